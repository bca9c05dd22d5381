"""What a profile declares of its questions is checked like everything else in it, and does not belong to its policy."""

from __future__ import annotations

import pytest

from carag.errors import InvalidArgument
from carag.policy import Profile
from carag.policy.shipped import SHIPPED, shipped_text, table_hashes
from carag.retrieval.reading import Declared, ReportKind

EDGAR = Profile.open("edgar")
READING = EDGAR.reading["reading.toml"]


def declared(text: str, base: str = "generic", **tables: str) -> Declared:
    texts = (shipped_text(base, "profile.toml"), shipped_text(base, "roles.toml"))
    files = {"reading.toml": text, **{f"{name}.tsv": table for name, table in tables.items()}}
    return Declared.of(Profile.from_texts(*texts, reading=files))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_profile_that_ships_says_how_questions_are_read(name: str) -> None:
    """And its policy's hash covers its two other files alone."""
    profile = Profile.open(name)
    assert Declared.of(profile).period
    assert profile.table.sha256 == table_hashes(*profile.texts)[0]
    assert profile.reading.keys() <= {"reading.toml", "kinds.tsv", "lexicon.tsv", "gate.toml"}


def test_edgars_kinds_are_base_forms() -> None:
    """Amendments and variants count as the form that people ask for; an S-11 is not an S-1."""
    edgar = Declared.of(EDGAR)
    forms = ("10-K/A", "10-KT", "424B5", "schedule 13d/a", "S-11", "S-1MEF", "4", "40-F", "")
    kinds = ("10-K", "10-K", "424B", "SC 13D", "S-11", "S-1", "4", "40-F", "")
    assert tuple(map(edgar.kind_of, forms)) == kinds
    assert [edgar.report(one).value for one in ("10-K", "10-Q", "8-K")] == ["annual", "interim", "other"]
    asked = {term for _, terms in edgar.kinds._rules for term in terms}  # type: ignore[union-attr]
    assert {edgar.kind_of(one) for one in asked} == asked, "a table that asks for a variant finds nothing"


def test_kinds_of_ones_own_are_compared_without_capitals() -> None:
    """As metadata is."""
    own = declared('schema = 1\nkind = "kind"\nannual = ["Yearbook"]\n[variants]\nMemo = ["Note"]\n')
    assert (own.kind_of("NOTE"), own.kind_of(" Board  Paper")) == ("memo", "board paper")
    assert own.report("yearbook") is ReportKind.ANNUAL
    table = declared('schema = 1\nkind = "kind"\nkinds = "kinds.tsv"\n', kinds="\\bnotes?\\b\tMemo")
    assert table.kinds is not None
    assert table.kinds.expand("any note?") == ("Memo",)


def test_a_profile_without_the_file_reads_nothing() -> None:
    """Neither titles nor kinds; and its hash is unique."""
    bare = Declared.of(Profile.from_texts(*EDGAR.texts))
    assert (bare.companies, bare.title, bare.kind, bare.kinds, len(bare.lexicon)) == (
        False,
        None,
        None,
        None,
        0,
    )
    changed = {**EDGAR.reading, "kinds.tsv": EDGAR.reading["kinds.tsv"] + "\n"}
    hashes = {
        Declared.of(Profile.from_texts(*EDGAR.texts, reading=one)).sha256
        for one in ({}, EDGAR.reading, changed)
    }
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("text", "base", "tables", "why"),
    [
        ("", "generic", {}, "schema: is missing"),
        ("schema = true", "generic", {}, "want 1"),
        (
            "schema = 1\ntitel = 'x'",
            "generic",
            {},
            "line 2: titel: no such key; want one of schema, companies",
        ),
        ("schema = 1\ntitle = 'A b'", "generic", {}, "line 2: title"),
        ("schema = 1\ntitle = 7", "generic", {}, "line 2: title"),
        ("schema = 1\ncompanies = true", "generic", {}, "line 2: companies: companies are read from filings"),
        ("schema = 1", "edgar", {}, "companies are read from filings"),
        ("schema = 1\ncompanies = true\ntitle = 'title'", "edgar", {}, "line 3: title: a filing has no such"),
        ("schema = 1\ncompanies = true\nkind = 'kind'", "edgar", {}, "line 3: kind: .* want form"),
        ("schema = 1\nkind = 'year'", "generic", {}, "line 2: kind: year is declared as number"),
        ("schema = 1\nperiod = 'kind'", "generic", {}, "line 2: period: kind is declared as text"),
        (
            "schema = 1\nkinds = 'kinds.tsv'\nkind='kind'",
            "generic",
            {},
            "line 2: kinds: there is no kinds.tsv",
        ),
        ("schema = 1\nkinds = '../k.tsv'", "generic", {}, "line 2: kinds"),
        (
            "schema = 1",
            "generic",
            {"lexicon": "a\tb"},
            "lexicon.tsv is there, but reading.toml does not name it",
        ),
        (
            "schema = 1\nkinds = 'kinds.tsv'",
            "generic",
            {"kinds": "a\tb"},
            "line 2: kinds: no field has the kind",
        ),
        ("schema = 1\nlexicon = 'lexicon.tsv'", "generic", {"lexicon": "(\tb"}, "lexicon.tsv, line 1"),
        (
            "schema = 1\nannual = ['a']\ninterim = ['A']",
            "generic",
            {},
            "line 3: interim 1: A is in both annual and interim",
        ),
        ("schema = 1\nannual = ['']", "generic", {}, "line 2: annual 1"),
        (
            "schema = 1\n[variants]\na = ['b']\nc = ['B']",
            "generic",
            {},
            "line 4: variants c: B also names another",
        ),
        (
            "schema = 1\n[variants]\na = ['b']\nb = ['c']",
            "generic",
            {},
            "line 3: variants a: b also names another",
        ),
        ("schema = ", "generic", {}, "reading.toml, line 1: not valid TOML"),
    ],
)
def test_what_is_not_valid_is_refused_with_its_line(
    text: str, base: str, tables: dict[str, str], why: str
) -> None:
    """Unknown keys, fields that cannot hold it, tables that are missing, unnamed or broken."""
    with pytest.raises(InvalidArgument, match=why):
        declared(text, base, **tables)


def test_a_table_without_the_file_that_names_it_is_refused() -> None:
    """It would be there and count for nothing."""
    with pytest.raises(InvalidArgument, match=r"kinds\.tsv is there, but there is no reading\.toml"):
        Declared.of(Profile.from_texts(*EDGAR.texts, reading={"kinds.tsv": ""}))
    with pytest.raises(InvalidArgument, match=r"the file 'more\.tsv' is not part of a profile"):
        Declared.of(Profile.from_texts(*EDGAR.texts, reading={"more.tsv": ""}))
