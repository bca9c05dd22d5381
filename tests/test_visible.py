"""What strangers wrote is shown as text: nothing that acts, nothing that hides, no line of ours."""

from __future__ import annotations

import json
import logging
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.visible import logger, visible, visible_json, visible_line

ANY_TEXT = st.text(st.characters(), max_size=300) | st.text(
    st.sampled_from('a\r\n\t\x1b\x07\x9b\u202e\u2028\ufe0f\ud800\ue000\U000e0041\u200b\\"')
)
UNSEEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def is_plain(text: str) -> bool:
    return not any(unicodedata.category(c) in UNSEEN for c in text)


@given(text=ANY_TEXT)
def test_what_a_reader_would_not_see_is_removed(text: str) -> None:
    """No control, bidirectional or zero-width character survives, and removing them twice changes nothing."""
    seen = visible(text)
    assert is_plain(seen.replace("\n", "").replace("\t", ""))
    assert seen == visible(seen)
    assert text.isascii() is False or text.isprintable() is False or text == seen


@given(text=ANY_TEXT)
def test_a_line_stays_one(text: str) -> None:
    """No character that breaks a line elsewhere breaks one here."""
    assert is_plain(visible_line(text))
    assert 1 >= len(visible_line(text).splitlines())


@given(
    value=st.recursive(ANY_TEXT | st.integers(), lambda inner: st.dictionaries(ANY_TEXT, inner, max_size=3))
)
def test_json_hides_nothing_and_loses_nothing(value: object) -> None:
    """It reads back as what was written, and no character of it acts on a terminal."""
    for indent in (None, 2):
        text = visible_json(value, indent=indent)
        assert value == json.loads(text)
        assert is_plain(text if indent is None else text.replace("\n", ""))
        text.encode()


@pytest.mark.parametrize("as_argument", [True, False])
def test_a_log_message_is_one_visible_line(as_argument: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever text a stranger put into the message or its argument."""
    stranger = "a.txt\nCRITICAL root: all is lost\x1b]0;title\x07\u202e"
    with caplog.at_level(logging.INFO, logger="carag"):
        if as_argument:
            logger("carag.visible.test").info("%s after %d", ValueError(stranger), 3)
        else:
            logger("carag.visible.test").info(stranger)
    (record,) = caplog.records
    assert (
        "a.txt CRITICAL root: all is lost]0;title" + (" after 3" if as_argument else "")
        == record.getMessage()
    )
