"""A circular that a question names by number comes first; a hidden one behaves like one that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag import Session

if TYPE_CHECKING:
    from carag import Engine

ANALYST = Session(role="analyst", purpose="research")
INTERNAL, OLD, NONE = "BAE/2023-24/96", "BAE/2022-23/14", "BAE/2023-24/97"


@pytest.mark.parametrize(
    "said",
    ["BAE / 2023-2024 / 88", "DPSS. POLC. No. 07/02.14.003/2023-24", "dpss.polc.7/02.14.003/2023-24"],
)
def test_the_circular_named_by_number_comes_first_and_alone_is_cited(engine: Engine, said: str) -> None:
    answer = engine.ask(f"What does {said} say of customers of high risk?", ANALYST)
    assert answer.passages[0].accession_number == "wallets-2024.txt"
    assert {one.accession_number for one in answer.citations} <= {"wallets-2024.txt"}
    assert answer.understood.startswith(said)
    plain = engine.retrieve("What is said of customers of high risk?", ANALYST)
    assert plain.passages[0].accession_number != "wallets-2024.txt"


def test_a_number_widens_nothing(engine: Engine) -> None:
    asked = engine.retrieve("What does BAE/2023-24/88 say?", ANALYST, 50)
    plain = engine.retrieve("What is said?", ANALYST, 50)
    assert {one.chunk_id for one in asked.passages} == {one.chunk_id for one in plain.passages}


def test_a_hidden_circular_s_number_is_as_one_that_does_not_exist(engine: Engine) -> None:
    def said(number: str) -> str:
        answer = engine.ask(f"What does {number} say?", ANALYST)
        # How near a passage is depends on the words of the question, and the number is one of them.
        apart = ("record", "passages", "top_similarity", "nearest")
        seen = {name: one for name, one in answer.to_json().items() if name not in apart}
        return str(seen).replace(number, "N")

    assert said(INTERNAL) == said(OLD) == said(NONE)
    assert "NOTHING_ABOUT_IT" in said(NONE)


def test_by_number_a_text_is_found_as_of_the_day_on_which_it_was_in_force(engine: Engine) -> None:
    answer = engine.retrieve(f"What did {OLD} say as on 1 March 2024?", ANALYST)
    assert answer.passages[0].accession_number == "wallets-2022.txt"
