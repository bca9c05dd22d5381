"""The verdicts belong to the answers as they are, and agreement is counted as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.edgar import judged

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.release
def test_every_answer_has_a_verdict_by_hand(tmp_path: Path) -> None:
    """The same 200 answers on every machine; a text that changed must be judged again."""
    found = judged.answers(tmp_path)
    by_hand = judged.read_by_hand(found)
    assert 200 == len(found) == len(by_hand)
    of_carag = [verdict for one, verdict in zip(found, by_hand, strict=True) if "/carag-" in one.id]
    assert of_carag
    assert not any(of_carag)
    assert "the reader alone" in judged.agreement(by_hand, [one.by_rule for one in found])
    one = next(one for one, verdict in zip(found, by_hand, strict=True) if verdict and one.by_rule)
    listed = "\n".join(judged.listing([one]))
    assert one.id in listed
    assert "   W the same words" in listed
    changed = tmp_path / "changed.tsv"
    kept = judged.BY_HAND.read_text("utf-8")
    changed.write_text(kept.replace(f"{one.id}\t{one.sha256[:16]}", f"{one.id}\t{'0' * 16}"), "utf-8")
    with pytest.raises(ValueError, match="1 of 200 answers have no verdict"):
        judged.read_by_hand(found, changed)


def test_agreement_is_beyond_chance_and_leaves_out_what_is_unjudged() -> None:
    """20 and 15 agree, 5 and 10 do not: Cohen's own example."""
    by_hand = [False] * 25 + [True] * 25 + [True]
    said = [False] * 20 + [True] * 5 + [False] * 10 + [True] * 15 + [None]
    assert judged.agreement(by_hand, said) == (
        "kappa 0.40 on 50: both yes 15, both no 20, the reader alone 10, it alone 5; unjudged 1"
    )
