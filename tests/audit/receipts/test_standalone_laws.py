"""What scripts/verify_receipt.py holds to at its edges: who may be proved, when, and how long anything may be."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carag.audit import EntityRule, IndexState, PolicyApplied, SigningKey, StateView
from carag.audit.tlog.encoding import b64url
from tests.audit.receipts.page import script
from tests.audit.records import test_begin as begins


@pytest.fixture
def signed(build):
    """Sign a receipt in order."""
    receipt, vkey = build.forge(build.record())
    return receipt.to_bytes(), vkey


# -- records


def test_a_begin_is_judged_like_the_question_it_begins(build):
    """It commits to the question, and to lists if it has some."""
    asked = build.record().commitments
    begun = build.record(
        event=begins.begin(), hits=(), commitments={n: asked[n] for n in ("query", "subject")}
    )
    script.check_record(script.read_record(begun.to_bytes()))
    silent = dataclasses.replace(begun, commitments={"subject": asked["subject"]})
    with pytest.raises(script.Failed, match="commits to no question"):
        script.check_record(script.read_record(silent.to_bytes()))


def test_what_is_reopened_admits_under_a_list_of_its_own(build):
    """A passage that no other pair admits; and the record commits to that list."""
    rule = EntityRule("deny", 2)
    policy = PolicyApplied(b"T" * 32, ((0x40, 0),), reopened=((0x21, 0),), reopened_entities=rule)
    event, asked = build.access(policy=policy), build.record().commitments
    listed = build.record(event=event, commitments={**asked, "entities": b"c" * 32})
    script.check_record(script.read_record(listed.to_bytes()))
    with pytest.raises(script.Failed, match="commits to lists that it lacks"):
        script.check_record(script.read_record(build.record(event=event).to_bytes()))


def test_an_explanation_is_of_passages_that_no_search_found(build):
    """Its index may have no admissible row."""
    asked, index = build.record().commitments, IndexState(build.state().root, 0, "exact")
    explained = build.record(
        event=build.access(kind="explain", index=index),
        commitments={name: asked[name] for name in ("query", "subject")},
    )
    uncited = dataclasses.replace(
        explained, hits=tuple(dataclasses.replace(hit, cited=False) for hit in explained.hits)
    )
    script.check_record(script.read_record(uncited.to_bytes()))


# -- the index state


def test_a_passage_is_proved_by_a_name_of_any_script(build, judge):
    """What is hashed is its text as UTF-8, and no spelling of it in ASCII."""
    passage = dataclasses.replace(build.passages()[0], chunk="Überblick:00000")
    label = build.label(passage)
    view = StateView.of({build.place_of(label): label.leaf(b"K" * 32)})
    event = build.access(index=IndexState(view.root, 1, "exact"))
    receipt, vkey = build.forge(
        build.record(event=event, hits=(passage.hit,)), shown=[(passage.chunk, passage.text)]
    )
    proved = dataclasses.replace(receipt, proofs=(build.prove(label, view),))
    code, said = judge(proved.to_bytes(), vkey)
    assert (code, "stood in its index state" in said) == (0, True)


@pytest.mark.parametrize("as_of", [0xFFFFFFFF, 0xFFFFFFFE])
def test_a_sealed_end_may_be_the_end_of_time(build, judge, as_of):
    """A question about the last minute of all is answered: the word held."""
    labels = [build.label(passage) for passage in build.passages(5)]
    receipt, vkey = build.forge_over(labels, as_of=as_of)
    sealed = dataclasses.replace(receipt, proofs=tuple(proof.sealed() for proof in receipt.proofs))
    assert judge(sealed.to_bytes(), vkey)[0] == 0


def test_a_point_is_read_as_it_was_written():
    """In one spelling: a coordinate of P or more is that of another."""
    point = script.BASE
    for _ in range(20):
        written = script.point_encode(point)
        assert written == script.point_encode(script.point_decode(written))
        point = script.point_add(point, script.BASE)
    for number in (0, 1):
        assert script.point_decode(number.to_bytes(32, "little")) is not None
        assert script.point_decode((script.P + number).to_bytes(32, "little")) is None


def test_the_group_s_order_is_no_second_zero():
    """Under the neutral key, whose signatures anybody makes, S = 0 verifies; S = L is the same number, and refused."""
    neutral = script.point_encode(script.IDENTITY)
    assert [True, False] == [
        script.ed25519_verify(neutral, b"m", neutral + s.to_bytes(32, "little")) for s in (0, script.L)
    ]


# -- lengths and forms


def test_a_receipt_is_read_to_its_limit_and_ends_in_a_newline(signed, judge, monkeypatch):
    """A byte more, or another last one, and nothing can be told."""
    data, vkey = signed
    monkeypatch.setattr(script, "MAX_BYTES", len(data))
    assert [0, 2] == [judge(one, vkey)[0] for one in (data, data[:-1] + b" ")]
    keys = script.parse_vkeys(vkey)
    monkeypatch.setattr(script, "MAX_BYTES", len(data) - 1)
    with pytest.raises(script.CannotTell, match="at most"):
        script.check_receipt(data, keys)


def test_a_record_is_read_to_its_limit(build, monkeypatch):
    """Which is below what an entry of a log's bundle may have."""
    body = build.record().to_bytes()
    monkeypatch.setattr(script, "MAX_RECORD_BYTES", len(body))
    assert json.loads(body) == script.read_record(body)
    monkeypatch.setattr(script, "MAX_RECORD_BYTES", len(body) - 1)
    with pytest.raises(script.CannotTell):
        script.read_record(body)


def test_a_proof_has_a_word_a_number_hashes_and_a_note():
    """No other word, no proof without a note, and no more hashes than the largest tree has levels."""
    line = "A" * 43 + "="
    longest = "\n".join(["index 7", *[line] * 63])
    assert (7, [bytes(32)] * 63, "note") == script.parse_proof(f"{longest}\n\nnote", "index")
    for proof in (f"{longest}\n{line}\n\nnote", "other 0\n\nnote", "index 0", "index\n\nnote", ""):
        with pytest.raises(script.CannotTell):
            script.parse_proof(proof, "index")


def line(name="log.example", data=bytes(5), more=""):
    return f"\u2014 {name} {base64.b64encode(data).decode()}{more}\n"


def test_a_signature_line_has_a_name_a_key_id_and_a_signature():
    """Of a hundred keys at most, each once; and every line ends."""
    hundred = [line(f"log.example/{n}") for n in range(100)]
    (one,) = script.parse_signatures(line(data=b"keyid"))
    assert ("log.example", b"keyi", b"d") == one
    assert 100 == len(script.parse_signatures("".join(hundred)))
    for bad in (
        "",
        line()[:-1],
        line() * 2,
        "".join([*hundred, line()]),
        line(data=bytes(4)),
        line(name="log+example"),
        line(more=" more"),
        line().replace("\u2014", "-"),
        line().replace(" ", "  ", 1),
    ):
        with pytest.raises(script.CannotTell):
            script.parse_signatures(bad)


def test_a_name_has_1_to_200_characters_that_can_be_seen():
    """Neither a space of any width nor the plus sign that ends it in a vkey."""
    assert all(script.is_name(name) for name in ("a", "log.example/\u00e9", "a" * 200))
    assert not any(
        script.is_name(name) for name in ("", "a" * 201, "a b", "a\u00a0b", "a+b", "a\u202eb", "a\nb")
    )


def vkey_of(data, name="log.example"):
    """Spell a vkey with the key id that its bytes have."""
    key_id = hashlib.sha256(name.encode() + b"\n" + data).hexdigest()[:8]
    return f"{name}+{key_id}+{base64.b64encode(data).decode()}"


def test_a_key_is_of_a_known_type_and_a_point():
    """Any other key is refused, though its key id is right."""
    point = script.point_encode(script.BASE)
    name, key = script.parse_vkey(vkey_of(b"\x01" + point))
    assert ("log.example", "log.example", point) == (name, key.name, key.data)
    assert ("log.example", None) == script.parse_vkey(vkey_of(b"\x06" + bytes(1312)))
    no_point = next(
        y for y in (bytes([n]) + bytes(31) for n in range(2, 99)) if script.point_decode(y) is None
    )
    for data in (
        b"\x02" + point,
        b"\x01" + no_point,
        b"\x01" + point + b"x",
        b"\x01" + point[:-1],
        b"\x06" + bytes(1311),
        b"\x07" + bytes(1312),
        b"\x06" + point,
        b"",
    ):
        with pytest.raises(script.CannotTell, match="want an Ed25519 vkey"):
            script.parse_vkey(vkey_of(data))
    good = vkey_of(b"\x01" + point)
    for text in (vkey_of(b"\x01" + point, "a b"), f"{good} {KEY.verifier}"):
        with pytest.raises(script.CannotTell):
            script.parse_vkeys(text)


ROOT_LINE = "A" * 43 + "="
KEY = SigningKey("log.example", b"k" * 32)


def opened(text, *keys):
    return script.open_checkpoint(
        text, script.parse_vkeys("\n".join(str(key.verifier) for key in keys or [KEY]))
    )


def test_a_checkpoint_is_a_signed_note_of_three_lines():
    """Any other lines are refused, though the right key signed them."""
    assert ("log.example", 6, bytes(32)) == opened(KEY.sign(f"log.example\n6\n{ROOT_LINE}\n").to_text())
    for other in (
        f"log.example 6\n{ROOT_LINE}\n",
        f"log.example\n6\n{'A' * 40}\n",
        f"log example\n6\n{ROOT_LINE}\n",
        f"log.example\n6\n{ROOT_LINE}\nmore\n",
        "log.example\n6\n",
    ):
        with pytest.raises(script.CannotTell, match="is not a checkpoint"):
            opened(KEY.sign(other).to_text())


def test_what_is_no_note_is_not_said_to_be_altered():
    """A note has a text without controls, a blank line and lines that sign it."""
    note = KEY.sign(f"log.example\n6\n{ROOT_LINE}\n").to_text()
    for text in (
        note.replace("6", "6\t"),
        note[note.index("\n\n") :],
        note.replace("\n\n", "\n"),
        "",
        "\n\n",
    ):
        with pytest.raises(script.CannotTell, match="a checkpoint is a text"):
            opened(text)


def test_who_signed_is_told_from_who_was_expected():
    """By name and key id, so that a rotated key can be found."""
    first, second, third = (SigningKey("log.example", bytes([n]) * 32) for n in range(3))
    text = f"log.example\n6\n{ROOT_LINE}\n"
    ids = ["+".join(str(key.verifier).split("+")[:2]) for key in (first, second, third, KEY)]
    note = f"{first.sign(text).to_text()}{second.sign(text).signatures[0].to_line()}\n"
    with pytest.raises(script.CannotTell) as refused:
        opened(note, third, KEY)
    said = f"signed by {ids[0]}, {ids[1]}, not by {ids[2]}, {ids[3]}; give"
    assert said in str(refused.value)


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"log":5}', b"5"])
def test_what_says_not_where_it_stands_is_no_record(body):
    """It is an object with an id, a log, a number and an instant."""
    with pytest.raises(script.CannotTell, match="lacks a valid id, log, seq or tc"):
        script.record_fields(body, "the record")


@pytest.mark.parametrize(
    "text", ["[" * 16 + "]" * 16, '{"a":[{"_b2":null}]}', "[-9007199254740991,9007199254740991]", "0"]
)
def test_what_every_reader_agrees_on_is_read(text):
    """Sixteen deep, by names in small letters, with integers of 53 bits."""
    assert json.loads(text) == script.canonical(text.encode(), "it")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 17 + "]" * 17,
        '{"a":' * 17 + "0" + "}" * 17,
        "true",
        "[[false]]",
        '{"a":{"b":true}}',
        '{"A":1}',
        '[{"a b":1}]',
        '{"_":1}',
        '{"1a":1}',
        '{"\u00e9":1}',
        "9007199254740992",
        "-9007199254740992",
        "1.0",
        "1e3",
        "NaN",
        "-0",
        "[1, 2]",
        '{"b":1,"a":2}',
        '"\\u00e9"',
    ],
)
def test_what_a_reader_may_take_for_something_else_is_not(text):
    """Booleans, which are integers to some; other names and numbers, and any other spelling."""
    with pytest.raises(script.CannotTell):
        script.canonical(text.encode(), "it")


def test_a_number_has_63_bits():
    """As the log's own have."""
    assert [0, 2**63 - 1] == [script.number(str(number), "it") for number in (0, 2**63 - 1)]
    for bad in (str(2**63), "", "-1", "01", "+1", "1 ", "\u0661", "1" * 5000):
        with pytest.raises(script.CannotTell):
            script.number(bad, "it")


@given(st.binary(max_size=40))
@example(b"\0\0\x17")  # AAAX
def test_bytes_are_spelt_as_records_spell_them(data):
    """And read again."""
    assert b64url(data) == script.base64url(data)
    assert data == script.unbase64url(script.base64url(data))


def test_what_cannot_be_seen_is_spelt_out():
    """And nothing else is."""
    assert "a\u00e9 \\u202e\\x1b[1m\\n" == script.visible("a\u00e9 \u202e\x1b[1m\n")
