"""A verification says what is wrong where it is, and what is not shown."""

from __future__ import annotations

import dataclasses

import pytest

from carag.audit import Check, EntityRule, ListKind, Opening, SigningKey, Verdict, verify_receipt
from tests.audit.receipts.alterations import altered


def test_what_no_receipt_opens_is_told_apart_from_what_this_one_keeps_back(build):
    """Who stands on a list is disclosed by none; a subject that is left out could be shown."""
    policy = dataclasses.replace(build.access().policy, entities=EntityRule(ListKind.DENY, 2))
    commitments = {**build.record().commitments, "entities": b"e" * 32}
    record = build.record(event=build.access(policy=policy), commitments=commitments)
    openings = {"query": Opening(b"s" * 32, build.SECRETS["query"])}
    receipt, vkey = build.forge(record, openings=openings)
    found = verify_receipt(receipt.to_bytes(), vkey)
    assert (found.undisclosed, found.withheld) == (("entities",), ("answer", "subject"))


def test_a_note_that_is_no_checkpoint_proves_nothing(build):
    """Though the log's own key signed it: what it means cannot be told."""
    receipt, vkey = build.forge(build.record())
    note = SigningKey(build.ORIGIN, b"k" * 32).sign(f"{build.ORIGIN}\nsix\nno root\n").to_text()
    data = altered(receipt.to_bytes(), lambda f: f.update(proof=f["proof"].split("\n\n")[0] + "\n\n" + note))
    found = verify_receipt(data, vkey)
    assert (found.verdict, found.stopped_at) == (Verdict.UNDECIDED, Check.ORIGIN)


@pytest.mark.parametrize("place", [1, 2])
def test_what_is_wrong_with_a_passage_is_said_of_that_passage(build, place):
    """By its place, counted from one: of its text as of its proof."""
    receipt, vkey = build.forge(build.record())
    for change, check, said in (
        (lambda hit: hit.update(text="else"), Check.PASSAGES, f"passage {place} is not the one of hit "),
        (
            lambda hit: hit["proof"].update({"from": 0}),
            Check.STATE,
            f"the proof of passage {place} does not lead",
        ),
    ):
        found = verify_receipt(
            altered(receipt.to_bytes(), lambda f, change=change: change(f["hits"][place - 1])), vkey
        )
        assert (found.stopped_at, found.reason[: len(said)]) == (check, said)
