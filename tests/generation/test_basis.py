"""Claims about what an answer says of the documents that it comes from."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from carag.generation import Citation, basis_of
from carag.retrieval.evidence import Topic

AMAZON = Topic("Amazon", is_particular=True)
CITED = Citation(
    number=1,
    chunk_id="a:0",
    accession_number="a",
    form="10-Q",
    company="Amazon",
    filed="2022-08-01",
    document="10-Q",
    start=0,
    end=9,
)
OTHER = replace(CITED, number=2, chunk_id="b:0", accession_number="b", filed="2022-11-01")


def test_each_document_is_named_once_in_the_order_of_the_citations() -> None:
    same = replace(OTHER, number=3, chunk_id="b:7")
    assert (
        "From 2 of the documents that this session may use: Amazon 10-Q filed 2022-11-01; Amazon 10-Q filed "
        "2022-08-01."
    ) == basis_of(AMAZON, [OTHER, CITED, same])


def test_what_nothing_is_about_is_said_in_the_questions_words() -> None:
    said = basis_of(replace(AMAZON, missing="Boeing in 2019"), [CITED])
    assert said.endswith("2022-08-01. Nothing that it may use is about Boeing in 2019.")


def test_a_document_that_is_no_filing_is_named_as_its_profile_names_it() -> None:
    page = replace(CITED, form="", company="", filed="", source="Handbook, page 3")
    assert (
        "From one of the documents that this session may use: Handbook, page 3; Handbook, page 4."
        == basis_of(AMAZON, [page, replace(page, number=2, chunk_id="a:1", source="Handbook, page 4")])
    )


@given(missing=st.text(max_size=9), count=st.integers(0, 2), is_particular=st.booleans())
def test_only_an_answer_about_somebody_or_a_time_has_a_basis(
    missing: str, count: int, is_particular: bool
) -> None:
    topic = Topic("x", missing=missing, is_particular=is_particular)
    assert bool(basis_of(topic, [CITED, OTHER][:count])) == (is_particular and count > 0)


def test_a_filer_forges_no_line() -> None:
    assert "\n" not in basis_of(
        replace(AMAZON, missing="x\ny"), [replace(CITED, company="A\n\x1b[2Jrecord 1")]
    )
