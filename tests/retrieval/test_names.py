"""Companies are found by whole names, short names and tickers; what is not in the table cannot change a reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.retrieval.reading import Names, Naming, read_question
from carag.retrieval.reading.names import common_words

if TYPE_CHECKING:
    from carag.retrieval.reading import Key

ROWS = [
    ("Apple Inc.", ["AAPL"], 1),
    ("Apple Hospitality REIT, Inc.", ["APLE"], 2),
    ("TARGET CORP", ["TGT"], 3),
    ("JOHNSON & JOHNSON", ["JNJ"], 4),
    ("Amcor plc", ["AMCR"], 5),
    ("ADVANCED MICRO DEVICES INC", ["AMD"], 6),
    ("INTERNATIONAL BUSINESS MACHINES CORP", [], 7),
    ("PROCTER & GAMBLE Co", ["PG"], 8),
    ("Bank of America Corp /DE/", ["BAC"], 9),
    ("US BANCORP \\DE\\", ["USB"], 10),
    ("AT&T INC.", ["T"], 11),
    ("McDONALDS CORP", ["MCD"], 12),
    ("AMAZON COM INC", ["AMZN"], 13),
    ("BEST BUY CO INC", ["BBY"], 14),
    ("3M CO", ["MMM"], 15),
    ("Verizon Communications Inc", ["VZ"], 16),
    ("ESTEE LAUDER COMPANIES INC", ["EL"], 17),
    ("NEW YORK TIMES CO", ["NYT"], 18),
    ("Q2 Holdings, Inc.", ["QTWO"], 19),
    ("NVIDIA CORP", ["NVDA"], 20),
    ("NVIDIA CORP", [], 21),
    ("ALLSTATE CORP", ["ALL"], 22),
    ("FORD MOTOR CO", ["F"], 23),
    ("BERKSHIRE HATHAWAY INC", ["BRK-B"], 24),
    ("Novo Nordisk A/S", ["NVO"], 25),
    ("The Home Depot, Inc.", ["HD"], 26),
    ("eBay Inc.", ["EBAY"], 27),
]
NAMES = Names(ROWS)


def keys(question: str, names: Names = NAMES) -> list[tuple[Key, ...]]:
    return [one.keys for one in names.find(question)]


@pytest.mark.parametrize(
    ("question", "key", "naming"),
    [
        ("What did Apple sell?", 1, Naming.NAME),
        ("Apple Inc. sold what?", 1, Naming.NAME),
        ("the rent of Apple Hospitality", 2, Naming.FIRST_TWO_WORDS),
        ("the rent of Apple Hospitality REIT, Inc.", 2, Naming.NAME),
        ("AAPL in FY22", 1, Naming.TICKER),
        ("cash that JnJ realised", 4, Naming.TICKER),
        ("johnson and johnson in FY22", 4, Naming.NAME),
        ("Johnson&Johnson's sales", 4, Naming.NAME),
        ("AMCOR's liability", 5, Naming.NAME),
        ("In which AMD segment", 6, Naming.TICKER),
        ("advanced micro devices", 6, Naming.NAME),
        ("What does IBM own?", 7, Naming.INITIALS),
        ("P&G's margin", 8, Naming.INITIALS),
        ("Bank of America", 9, Naming.NAME),
        ("U.S. Bancorp", 10, Naming.NAME),
        ("AT&T's debt", 11, Naming.NAME),
        ("McDonald's rent; McDonalds", 12, Naming.NAME),
        ("Amazon.com", 13, Naming.NAME),
        ("did Amazon grow", 13, Naming.NAME),
        ("net PPNE for 3M", 15, Naming.NAME),
        ("Does Verizon pay?", 16, Naming.FIRST_WORD),
        ("Estée Lauder", 17, Naming.NAME),
        ("Este\u0301e Lauder", 17, Naming.NAME),
        ("$F or NYSE: F", 23, Naming.TICKER),
        ("BRK.B", 24, Naming.TICKER),
        ("novo nordisk a/s", 25, Naming.NAME),
        ("Home Depot", 26, Naming.NAME),
        ("eBay", 27, Naming.NAME),
        ("(NASDAQ: ALL)", 22, Naming.TICKER),
    ],
)
def test_a_company_is_found_as_people_call_it(question: str, key: int, naming: Naming) -> None:
    found = NAMES.find(question)
    assert {(key,)} == {one.keys for one in found}
    assert {naming} == {one.naming for one in found}


@pytest.mark.parametrize(
    "question",
    [
        "What is the target for margins? Target prices, and the Target Price",
        "Target? Where?",
        "the best buy of the year",
        "Is Apples a name, or apple pie?",
        "offices in New York",
        "in Q2, ALL IT SAID",
        "an F in aapl",
        "3m shares",
        "$3M",
        "The advanced class, a bank of ideas",
        "",
    ],
)
def test_words_that_name_nobody_are_not_read_as_names(question: str) -> None:
    assert [] == keys(question)


@pytest.mark.parametrize(
    "question",
    [
        "What did Target earn?",
        "Target's margin",
        "Target Corp margin",
        "Does Target pay?",
        "sales of Target, in all",
    ],
)
def test_a_common_word_is_a_name_where_it_is_written_as_one(question: str) -> None:
    assert [(3,)] == keys(question)


def test_common_words_of_a_name_must_all_be_written_as_a_name() -> None:
    assert [(14,)] == keys("Did Best Buy grow?")
    assert [] == keys("Did best buy grow?")


def test_a_quarter_is_no_company_called_q2() -> None:
    assert [(19,)] == keys("What did Q2 Holdings earn?")
    assert () == read_question("What was earned in Q2 2023?", names=NAMES).entities


def test_a_whole_name_beats_a_first_word() -> None:
    """Without Apple Inc., its word would name the one other that begins with it; with both, it is ambiguous to none."""
    assert [(2,)] == keys("Did Apple pay?", Names(ROWS[1:2]))
    assert [(1,)] == keys("Did Apple pay?")
    longer = [("Apple iSports Group", [], 90), ("Apple Hospitality Two", [], 91)]
    assert [(1,)] == keys("Did Apple pay?", Names([*ROWS, *longer]))


def test_two_companies_of_one_name_are_both_meant() -> None:
    assert [(20, 21)] == keys("What did NVIDIA sell?")


def test_a_first_word_that_several_share_names_none() -> None:
    two = [("Summa Health", [], 1), ("Summa Motors", [], 2)]
    assert [] == keys("Did Summa pay?", Names(two))
    assert [(1,)] == keys("Did Summa pay?", Names(two[:1]))
    former = [("Summa Health", [], 1), ("Summa Motors", [], 1)]
    assert [(1,)] == keys("Did Summa pay?", Names(former))


def test_names_across_a_period_or_a_sentence_are_not_joined() -> None:
    names = Names([("Kestrel Harbour", [], 1), ("Kestrel Marsh", [], 2)])
    assert [(1,)] == keys("Kestrel Harbour", names)
    assert () == read_question("Kestrel FY2022 Harbour", names=names).entities
    assert [] == keys("Kestrel? Harbour", names)


def test_titles_are_said_whole() -> None:
    titles = Names.of_titles(
        [("Remote work policy", "hr/7"), ("Canteen", "memo/7"), ("Travel policy 2024", "t")]
    )
    reading = read_question("Does the remote work policy of 2024 cover travel?", titles=titles)
    assert [("hr/7",)] == [one.keys for one in reading.titles]
    assert reading.described() == "remote work policy; 2024"
    assert [("t",)] == keys("the Travel Policy 2024", titles)
    assert [("memo/7",)] == keys("When does the Canteen open?", titles)
    assert [] == keys("What does remote work cost?", titles)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("A\tB", [], 1)], "printable"),
        ([("A", "AAPL", 1)], "want a list"),
        ([("A", ["\n"], 1)], "printable"),
        ([("A", [], 1.5)], "want an int or a str"),
        ([("A", [], True)], "want an int or a str"),
        ([("A", [], 1), ("B", [], "2")], "want all of one type"),
    ],
)
def test_a_bad_row_is_refused(rows: list[tuple[str, list[str], int]], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Names(rows)


def test_names_without_a_word_name_nothing() -> None:
    assert len(Names([("", [], 1), ("///", [""], 2), ("2022", [], 3), ("A", [], 4)])) == 0


def test_common_words_are_a_fixed_list_of_folded_words() -> None:
    assert {"target", "the", "new-york", "eps", "q2"} <= common_words()
    assert not {"apple", "amcor", "verizon"} & common_words()
    assert all(word == word.casefold() for word in common_words())


# --- laws -------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["Zorin", "Apple", "Hospitality", "Quux", "Motors", "of", "and", "Target", "Best", "Buy"]
)
MADE = st.tuples(
    st.lists(WORDS | st.sampled_from(["Inc", "Corp", "/NY/"]), min_size=1, max_size=4).map(" ".join),
    st.lists(st.sampled_from(["ZRN", "AAPL", "QX"]), max_size=1),
    st.integers(1, 6),
)
TABLES = st.lists(MADE, max_size=8)
ASKED = st.lists(
    WORDS | st.sampled_from(["ZRN", "did", "pay?", "FY2022", "QX's", "zorin"]), min_size=1, max_size=8
).map(" ".join)


@given(ASKED, TABLES, TABLES, TABLES)
def test_names_that_a_session_may_not_know_change_nothing(
    question: str, admissible: list, hidden: list, others: list
) -> None:
    """The table is made from what is admissible alone; nothing else in the store, now or before, is seen."""

    def read_in(store: list) -> object:
        rows = [row for row, is_admissible in store if is_admissible]
        return read_question(question, names=Names(rows))

    shown = [(row, True) for row in admissible]
    with_hidden = [*((row, False) for row in hidden), *shown]
    assert read_in(shown) == read_in(with_hidden) == read_in([*shown, *((row, False) for row in others)])


def test_a_hidden_name_in_the_table_would_change_a_reading() -> None:
    """Why the law above must be kept: here is the leak."""
    shown, hidden = ("Summa Health", [], 1), ("Summa Motors", [], 2)
    assert keys("Did Summa pay?", Names([shown])) != keys("Did Summa pay?", Names([shown, hidden]))


@given(ASKED, TABLES, st.randoms())
def test_the_order_of_rows_is_irrelevant(question: str, rows: list, random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert Names(rows).find(question) == Names(shuffled).find(question)
    assert Names(rows).find(question) == Names([*rows, *rows]).find(question)


@given(ASKED, TABLES, TABLES)
def test_more_names_never_remove_a_whole_name(question: str, rows: list, more: list) -> None:
    """What a whole name named is named still, unless its words are part of a longer name that was added."""
    after = Names([*rows, *more]).find(question)
    for one in Names(rows).find(question):
        if one.naming is Naming.NAME:
            kept = any(
                set(one.keys) <= set(other.keys)
                for other in after
                if other.text.casefold() == one.text.casefold()
            )
            longer = any(words(one.text) & words(other.text) and " " in other.text for other in after)
            assert kept or longer


def words(text: str) -> set[str]:
    return set(text.casefold().split())


@given(st.lists(st.sampled_from(["did", "xyzzy", "plugh", "grow", "frotz", "much"]), max_size=6), st.data())
def test_the_case_of_all_other_words_is_irrelevant(filler: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(filler)))
    cased = [data.draw(st.sampled_from([one, one.upper(), one.title()])) for one in filler]
    plain, other = ([*some[:at], "Amcor", *some[at:]] for some in (filler, cased))
    assert keys(" ".join(plain)) == keys(" ".join(other)) == [(5,)]


@given(st.text(max_size=200))
def test_any_text_can_be_asked(text: str) -> None:
    assert NAMES.find(text) == NAMES.find(text)
