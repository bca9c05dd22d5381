"""HTML to text: a table row is a line, hidden parts are gone, and the tagged cover facts are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.profiles.edgar.reading.markup import DeiFact, html_text, is_html, xml_text


@pytest.mark.parametrize(
    ("format_", "text", "truth"),
    [
        ("ixt:booleanfalse", "☒", False),  # the ticked box is "No"
        ("ixt:fixed-true", "☒", True),
        ("ixt-sec:boolballotbox", "☐", False),
        ("ixt-sec:boolballotbox", "☒", True),
        ("", "true", True),
        ("", "☒", None),
        ("", "No x", None),
    ],
)
def test_a_ticked_box_means_what_its_transformation_says(format_: str, text: str, truth: bool | None) -> None:
    """A box alone tells nothing: it may stand behind "No"."""
    markup = f'<p><ix:nonNumeric name="dei:EntityShellCompany" format="{format_}">{text}</ix:nonNumeric></p>'
    (fact,) = html_text(markup)[1]
    assert fact == DeiFact("EntityShellCompany", text, format_)
    assert fact.truth is truth


def test_facts_in_hidden_parts_count() -> None:
    """Filers tag cover facts in the hidden section too."""
    markup = '<ix:header><ix:nonNumeric name="dei:AmendmentFlag">false</ix:nonNumeric></ix:header>x'
    assert html_text(markup) == ("x", (DeiFact("AmendmentFlag", "false", ""),))


def test_ascii_filings_are_not_html() -> None:
    """Plain filings use a few tags of their own."""
    assert not is_html("<PAGE>\n<TABLE>\n<S> <C>\nSales 5\n</TABLE>")
    assert is_html("\n<!DOCTYPE html><html>")
    assert is_html('<TABLE border="0"><TR>')


def test_xml_forms_become_named_lines() -> None:
    """An ownership form's filled elements, in order."""
    xml = "<?xml version='1.0'?><a><owner>Doe &amp; Co</owner><code>\n</code><shares>5</shares></a>"
    assert xml_text(xml) == "owner: Doe & Co\nshares: 5"


@given(
    st.lists(st.sampled_from(["<table>", "</table>", "<tr>", "<td>", "</td>", "</tr>", "<p>", "<br>", "x "]))
)
def test_any_nesting_of_tables_keeps_every_word(pieces: list[str]) -> None:
    """However the tags are broken, no text is lost and none is invented."""
    assert html_text("".join(pieces))[0].count("x") == pieces.count("x ")
