"""One value, one byte string; every other spelling is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit.tlog.encoding import MAX_INTEGER, b64, b64url, decode, encode, unb64, unb64url
from carag.errors import CorruptFile, InvalidArgument

KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
SCALARS = st.none() | st.integers(-MAX_INTEGER, MAX_INTEGER) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20)


@given(VALUES)
def test_round_trip(value):
    """What is encoded decodes to itself."""
    assert decode(encode(value)) == value


@given(st.dictionaries(KEYS, SCALARS))
def test_key_order_of_the_input_does_not_matter(value):
    """Keys are sorted, however the caller ordered them."""
    assert encode(value) == encode(dict(reversed(value.items())))


@given(st.binary(max_size=80))
def test_any_bytes_decode_to_themselves_or_not_at_all(data):
    """There is no second spelling of anything."""
    try:
        value = decode(data)
    except CorruptFile:
        return
    assert encode(value) == data


@pytest.mark.parametrize(
    "spelling",
    {
        "a space": b'{"a": 1}',
        "a duplicate key": b'{"a":1,"a":1}',
        "unsorted keys": b'{"b":1,"a":2}',
        "a float": b'{"a":1.0}',
        "an exponent": b'{"a":1e3}',
        "not a number": b'{"a":NaN}',
        "infinity": b'{"a":Infinity}',
        "minus zero": b'{"a":-0}',
        "a boolean": b'{"a":true}',
        "2**53": b'{"a":9007199254740992}',
        "five thousand digits": b"1" * 5000,
        "an escaped letter": b'{"a":"\\u0041"}',
        "an escaped slash": b'{"a":"\\/"}',
        "upper-case hex": b'{"a":"\\u001F"}',
        "a lone surrogate": b'{"a":"\\ud800"}',
        "a raw control character": b'{"a":"\x01"}',
        "a byte-order mark": b'\xef\xbb\xbf{"a":1}',
        "UTF-16": '{"a":1}'.encode("utf-16"),
        "Latin-1": b'{"a":"\xe9"}',
        "an upper-case key": b'{"A":1}',
        "an empty key": b'{"":1}',
        "a trailing newline": b'{"a":1}\n',
        "a second value": b'{"a":1}{}',
        "deep nesting": b"[" * 100_000,
        "nothing": b"",
    }.items(),
    ids=lambda case: case[0],
)
def test_another_spelling_is_refused(spelling):
    """Bytes that would not be written are not read."""
    with pytest.raises(CorruptFile):
        decode(spelling[1])


@pytest.mark.parametrize("value", [1.0, True, 1 << 53, b"a", {1: 2}, {"A": 1}, {"é": 1}, "\ud800", {1, 2}])
def test_what_has_no_canonical_form_is_not_written(value):
    """The writer refuses what a reader would."""
    with pytest.raises(InvalidArgument):
        encode(value)


@given(st.binary(max_size=70))
def test_base64_round_trip(data):
    """Both spellings of base64 come back."""
    assert unb64(b64(data)) == data
    assert unb64url(b64url(data), len(data)) == data


@pytest.mark.parametrize("text", ["QQ", "QR==", "QQ=", "QQ==\n", " QQ==", "Q!==", "é", "_w=="])
def test_base64_has_one_spelling(text):
    """Missing padding, stray bits, white space and foreign letters are refused."""
    with pytest.raises(CorruptFile):
        unb64(text)


@pytest.mark.parametrize("text", ["QQ==", "QR", "+w", "QUI", "Q", "", None, 5])
def test_base64url_has_one_spelling_and_length(text):
    """Padding, stray bits, the other alphabet and other lengths are refused."""
    with pytest.raises(CorruptFile):
        unb64url(text, 1)
