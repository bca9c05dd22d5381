"""An authority outside the store only removes documents, is asked before text leaves, and is on record."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag import Document, Engine, Session
from carag.audit import Verdict, verify_receipt
from carag.errors import AuthorizerUnavailable, InvalidArgument
from carag.retrieval import ConfidenceGate
from carag.retrieval.authority import Authority
from tests.engine.documents import QUESTION, Clock, Counting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

ANA = Session(role="compliance", purpose="review", principals={"user:ana"})
READER = Session(role="public", purpose="read", principals={"user:ana"})
NAMES = [f"d{number}" for number in range(12)]


class Rule:
    """Allows what a function says, and counts what it is asked."""

    name = "rule/1"

    def __init__(self, allows: Callable[[str], Any]) -> None:
        self.allows = allows
        self.asked: list[tuple[frozenset[str], tuple[str, ...]]] = []

    def allowed(self, principals: frozenset[str], document_ids: Sequence[str]) -> list[Any]:
        self.asked.append((principals, tuple(document_ids)))
        return [self.allows(one) for one in document_ids]


def opened(store: Path, authorizer: Any) -> Engine:
    return Engine.open(
        store,
        profile="generic",
        embedder=Counting(),
        clock=Clock(),
        gate=ConfidenceGate(-1),
        authorizer=authorizer,
    )


def found(engine: Engine, session: Session = ANA, k: int = 4) -> list[str]:
    return [one.document_id for one in engine.retrieve(QUESTION, session, k).passages]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("authority") / "store"
    with opened(home, None) as engine:
        engine.add(Document(id=name, text=f"Branches report, says {name}.", bits=()) for name in NAMES)
    return home


@pytest.mark.parametrize("hidden", [set(), {"d1"}, set(NAMES[::2]), set(NAMES[1:]), set(NAMES)])
def test_the_answer_is_the_order_without_what_is_forbidden(store: Path, hidden: set[str]) -> None:
    """As many as are asked for, as long as there are so many."""
    with opened(store, None) as engine:
        order = found(engine, k=len(NAMES))
    with opened(store, Rule(lambda one: one not in hidden)) as engine:
        for k in (1, 4, len(NAMES)):
            assert found(engine, k=k) == [one for one in order if one not in hidden][:k]


def test_no_similarity_is_that_of_a_forbidden_document(store: Path) -> None:
    """Otherwise it would open the gate, and show how near the document is."""
    with opened(store, None) as engine:
        nearest = max(engine.ask(QUESTION, ANA).passages, key=lambda one: one.similarity)
    with opened(store, Rule(lambda one: one != nearest.document_id)) as engine:
        answer = engine.ask(QUESTION, ANA)
    assert answer.top_similarity is not None
    assert answer.top_similarity < nearest.similarity


def test_it_is_asked_about_admissible_documents_only_with_all_that_the_host_stated(tmp_path: Path) -> None:
    rule = Rule(lambda _: True)
    with opened(tmp_path / "store", rule) as engine:
        engine.add(
            [
                Document(id="open", text="Branches report.", bits=()),
                Document(id="closed", text="Branches report secretly.", bits=["PERSONAL"]),
            ]
        )
        assert found(engine, READER.narrow(principals=[])) == ["open"]
    assert rule.asked == [(frozenset({"user:ana"}), ("open",))]


def test_its_verdicts_are_committed_to_and_no_receipt_opens_them(store: Path) -> None:
    with opened(store, Rule(lambda one: one == "d3")) as engine:
        receipt = engine.retrieve(QUESTION, ANA, 2).receipt
        whole = receipt.to_bytes()
        checked = verify_receipt(whole, engine.vkey)
        assert checked.verdict is Verdict.VERIFIED
        assert {"authority", "principals"} <= set(checked.undisclosed)
        assert b"rule/1" not in whole
        assert b"user:ana" not in whole
        said = json.loads(engine.log.private.openings(receipt.seq)["authority"].value)
    assert said["authority"] == "rule/1"
    assert said["verdicts"]["d3"] is True
    assert {*said["verdicts"]} == {*NAMES}


def test_an_explanation_follows_it(store: Path) -> None:
    """A session that may not know what exists gets the answer for a passage that does not."""
    with opened(store, Rule(lambda one: one != "d1")) as engine:
        told = engine.explain("d1:00000", ANA)
        assert (told.why, [one.reason.code for one in told.reasons]) == ("HIDDEN", ["AUTHORITY"])
        forbidden, absent = (engine.explain(one, READER).why for one in ("d1:00000", "d99:00000"))
        assert forbidden == absent == "NOTHING_TO_EXPLAIN"
        assert engine.explain("d2:00000", READER).why == "ADMISSIBLE"


@pytest.mark.parametrize(
    "verdict",
    [1, None, "yes"],
)
def test_what_is_not_a_verdict_shows_nothing(store: Path, verdict: Any) -> None:
    with opened(store, Rule(lambda _: verdict)) as engine:
        with pytest.raises(AuthorizerUnavailable, match="one boolean for each"):
            engine.retrieve(QUESTION, ANA)
        assert engine.log.record(engine.log.size - 1).event.why == "AUTHORIZER_UNAVAILABLE"


def test_too_few_verdicts_an_error_and_silence_show_nothing(store: Path) -> None:
    class Short(Rule):
        def allowed(self, principals: frozenset[str], document_ids: Sequence[str]) -> list[Any]:
            return [True] * (len(document_ids) - 1)

    class Silent(Rule):
        def allowed(self, principals: frozenset[str], document_ids: Sequence[str]) -> list[Any]:
            release.wait(30)
            return [True] * len(document_ids)

    release = threading.Event()
    secret = "d3 is about kestrel"  # noqa: S105
    for authorizer, said in (
        (Short(bool), "one boolean for each"),
        (Rule(lambda one: {}[secret]), "failed"),
        (Authority(Silent(bool), timeout=0.01), "no verdict within 0.01 s"),
    ):
        with opened(store, authorizer) as engine:
            with pytest.raises(AuthorizerUnavailable, match=said) as raised:
                engine.retrieve(QUESTION, ANA)
            assert "kestrel" not in str(raised.value)
    release.set()


def test_a_verdict_is_kept_for_the_same_principals_as_long_as_is_said() -> None:
    rule = Rule(lambda _: True)
    kept = Authority(rule, keep=60)
    for name in ("user:ana", "user:ana", "user:bo"):
        kept.inquiry(frozenset({name})).allows(["a", "b"])
    assert [ids for _, ids in rule.asked] == [("a", "b"), ("a", "b")]
    fresh = Authority(rule)
    one = fresh.inquiry(frozenset())
    one.allows(["a"])
    one.allows(["a", "b"])
    fresh.inquiry(frozenset()).allows(["a"])
    assert [ids for _, ids in rule.asked[2:]] == [("a",), ("b",), ("a",)]


@given(st.lists(st.sampled_from("abcdef")), st.frozensets(st.sampled_from("abcdef")))
def test_only_what_it_allows_remains(ids: list[str], allowed: frozenset[str]) -> None:
    inquiry = Authority(Rule(lambda one: one in allowed)).inquiry(frozenset())
    assert inquiry.allows(ids) == allowed & {*ids}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Authority(object()), "want an object with `name` and `allowed`"),
        (lambda: Authority(Rule(bool), timeout=0), "timeout is 0; want"),
        (lambda: Authority(Rule(bool), keep=-1), "keep is -1; want"),
        (lambda: Authority(Rule(bool), keep=True), "keep is True; want"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(made: Callable[[], Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        made()
