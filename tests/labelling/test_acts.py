"""Acts of documents: independent of the order of arrival, hiding in doubt, never effective before publication."""

from __future__ import annotations

import pickle
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag import Document
from carag.errors import InvalidArgument
from carag.labelling.acts import document_histories
from carag.labelling.declared import DeclaredLabel
from carag.labelling.document import Act, ActKind
from carag.labelling.stated import _row
from carag.policy import TOMBSTONE, Profile
from carag.policy.vocabulary import Lifecycle

LIFECYCLE = Profile.open("circulars").vocabulary.lifecycle
FLAGS = Profile.open("circulars").vocabulary.flags


def facts(id_: str, public_at: int = 0, **more: Any) -> dict[str, Any]:
    return {"id": id_, "public_at": public_at, "supersedes": None, **more}


def bits(one: str, several: list[dict[str, Any]], minute: int) -> set[str]:
    """The names of a document's bits at a minute; TOMBSTONE if its passages have ended."""
    spans = [span for span in document_histories(several, LIFECYCLE)[one] if span.since <= minute]
    word = spans[-1].bits
    return {bit.name for bit in FLAGS if word & bit} | ({"TOMBSTONE"} if word & TOMBSTONE else set())


ACTS = st.tuples(
    st.sampled_from(["replaces", "withdraws", "amends"]),
    st.sampled_from(["n/0", "n/1", "n/2", "d/0", "d/1", "unknown"]),
    st.none() | st.integers(0, 30),
)
CORPORA = st.lists(
    st.builds(
        lambda public_at, names, acts, later: {
            "public_at": public_at,
            "supersedes": None,
            "names": names,
            "acts": acts,
            "in_force_at": later,
        },
        st.integers(0, 20),
        st.lists(st.sampled_from(["n/0", "n/1", "n/2"]), max_size=2),
        st.lists(ACTS, max_size=3),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=6,
).map(lambda several: [{"id": f"d/{number}", **one} for number, one in enumerate(several)])


@given(CORPORA, st.randoms(use_true_random=False))
def test_the_order_of_arrival_makes_no_difference(several: list[dict[str, Any]], random: Any) -> None:
    shuffled = list(several)
    random.shuffle(shuffled)
    assert document_histories(shuffled, LIFECYCLE) == document_histories(several, LIFECYCLE)


@given(CORPORA, st.integers(0, 40))
def test_a_bit_holds_if_and_only_if_an_act_or_its_own_day_sets_it(
    several: list[dict[str, Any]], minute: int
) -> None:
    """Computed for each document directly, without spans."""
    for one in several:
        wanted = set()
        if one["in_force_at"] > one["public_at"] and minute < one["in_force_at"]:
            wanted.add("NOT_YET_IN_FORCE")
        for actor in several:
            for kind, name, since in actor["acts"]:
                at = max(actor["public_at"], actor["in_force_at"] if since is None else since)
                is_meant = name in {one["id"], *one["names"]} and actor["id"] != one["id"]
                if is_meant and one["public_at"] <= actor["public_at"] and at <= minute:
                    wanted.add(
                        {"replaces": "SUPERSEDED", "withdraws": "WITHDRAWN", "amends": "AMENDED"}[kind]
                    )
        assert bits(one["id"], several, minute) == wanted


def test_without_a_bit_what_is_replaced_ends_and_what_is_amended_stays() -> None:
    several = [
        facts("a"),
        facts("b"),
        facts("c", 5, acts=[["withdraws", "a", None], ["amends", "b", None]]),
    ]
    found = document_histories(several, Lifecycle())
    assert [span.bits for span in found["a"]] == [0, TOMBSTONE]
    assert [span.bits for span in found["b"]] == [0]


def test_the_cause_of_each_bit_is_the_document_that_set_it() -> None:
    several = [facts("a"), facts("b", 5, acts=[["amends", "a", None]]), facts("c", 3, in_force_at=7)]
    found = document_histories(several, LIFECYCLE)
    assert found["a"][-1].causes == (("AMENDED", "b"),)
    assert found["c"][0].causes == (("NOT_YET_IN_FORCE", "c"),)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"names": "No. 1"}, "want a list"),
        ({"names": [7]}, "want only str values"),
        ({"names": ["a\nb"]}, "printable"),
        ({"names": [str(number) for number in range(1001)]}, "want 1000 at most"),
        ({"acts": ["replaces a"]}, "want only Act values"),
        ({"acts": Act(ActKind.AMENDS, "a")}, "want a list"),
        ({"in_force_at": "soon"}, "in_force_at"),
    ],
)
def test_a_malformed_name_or_act_is_refused(given: dict[str, Any], wanted: str) -> None:
    with pytest.raises(InvalidArgument, match=wanted):
        Document(id="d", text="Text.", bits=(), **given)


def test_an_act_of_an_unknown_kind_or_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="want one of replaces, withdraws, amends"):
        Act("repeals", "a")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="the name in an act"):
        Act(ActKind.AMENDS, "")


def test_a_document_goes_to_another_process_with_its_acts() -> None:
    one = Document(
        id="d",
        text="Text.",
        bits=(),
        names=["n"],
        acts=[Act(ActKind.AMENDS, "a", date(2024, 1, 1))],
        in_force_at=date(2024, 2, 1),
    )
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - made here


def test_the_row_of_a_document_without_acts_is_what_it_was() -> None:
    """Its content hash stays the same, so that no store embeds it again."""
    vocabulary = Profile.open("generic").vocabulary
    row = _row(Document(id="d", text="Text.", bits=()), DeclaredLabel(0x0800_0000, ()), vocabulary)
    assert set(row.facts) == {
        "id", "removed", "public_at", "expires_at", "supersedes", "metadata", "facts", "entities", "language", "pages",
    }  # fmt: skip
    assert row.content_hash == "07520afddd2590280631b3aaf2c5e45bd1a987a8ead18cfcea34cdf9984202fc"
