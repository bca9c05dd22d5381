"""Each claim of a receipt holds on a real store, and each lie about it is found."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from carag import Engine, Session
from carag.audit import AuditLog, Basis, Check, Verdict, Verification, erase, redact, verify_receipt
from carag.audit.records.custody import Erasure
from carag.audit.tlog import encoding
from carag.engine.what_if.replay import ReplayVerdict, replay
from carag.policy import as_of_minutes
from carag.retrieval import retriever
from tests.sizes import SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

QUESTION = "What royalty rate does Lumenfield pay the Cardew Institute on net sales of LMF-204?"
ANA = Session(role="buy_side", purpose="invest", subject="ana@bank.example")
AUDITOR = Session(role="auditor", purpose="assure")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, ingested: Path) -> Iterator[Engine]:
    with Engine.open(shutil.copytree(ingested, tmp_path_factory.mktemp("proves") / "store")) as opened:
        yield opened


@pytest.fixture(scope="module")
def answered(engine: Engine) -> tuple[bytes, str]:
    """Issue one receipt of an answer from eight passages."""
    answer = engine.ask(QUESTION, ANA)
    assert (answer.outcome.value, len(answer.passages)) == ("answer", 8)
    return answer.receipt.to_bytes(), engine.vkey


def _in_record(old: str, new: str) -> Callable[[dict[str, Any]], None]:
    def change(fields: dict[str, Any]) -> None:
        assert old in fields["record"], fields["record"]
        fields["record"] = fields["record"].replace(old, new, 1)

    return change


def _opening(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda fields: fields["openings"][name].update(value="something else")


def _hit(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda fields: fields["hits"][0].update(values)


def _said(verification: Verification) -> Any:
    assert verification.record is not None
    return verification.record.event


CLAIMS: dict[str, tuple[Callable[[Verification], bool], Callable[[dict[str, Any]], None]]] = {
    "who asked": (lambda v: v.values["subject"] == "ana@bank.example", _opening("subject")),
    "the question, word for word": (lambda v: v.values["query"] == QUESTION, _opening("query")),
    "the answer, word for word": (lambda v: "royalty" in v.values["answer"], _opening("answer")),
    "under which role": (lambda v: _said(v).role == "buy_side", _in_record("buy_side", "counsel")),
    "for which purpose": (lambda v: _said(v).purpose == "invest", _in_record('"invest"', '"draft"')),
    "that the session was asserted": (
        lambda v: _said(v).source.value == "asserted",
        _in_record('"asserted"', '"verified"'),
    ),
    "under which masks": (lambda v: len(_said(v).policy.masks) > 0, _in_record('"masks":[[0', '"masks":[[1')),
    "by which policy table": (
        lambda v: len(_said(v).policy.table) == 32,
        _in_record('"table":"', '"table":"A'),
    ),
    "as of which minute": (lambda v: _said(v).as_of > 29_000_000, _in_record('"as_of":2', '"as_of":1')),
    "by which search plan": (lambda v: _said(v).index.plan == "certified", _in_record("certified", "graph")),
    "by which models": (lambda v: _said(v).models.embed == "wordllama", _in_record("wordllama", "minilm")),
    "with which outcome": (lambda v: _said(v).outcome.value == "answer", _in_record('"answer"', '"decline"')),
    "when it was asked": (lambda v: _said(v).started <= _said(v).ended, _in_record('"t0":1', '"t0":2')),
    "when it was committed": (lambda v: v.record.committed >= _said(v).ended, _in_record('"tc":1', '"tc":2')),  # type: ignore[union-attr]
    "at which place in the log": (lambda v: v.record.seq > 2, _in_record('"seq":', '"seq":1')),  # type: ignore[union-attr]
    "from which passages, word for word": (lambda v: len(v.passages) == 8, _hit(text="something else")),
    "of which documents": (
        lambda v: v.passages[0][0].endswith(":00001"),
        _hit(chunk="9990000101-24-000002:00009"),
    ),
    "in which order": (lambda v: len(v.passages) == 8, lambda fields: fields["hits"].reverse()),
    "that no passage was left out": (lambda v: len(v.passages) == 8, lambda fields: fields["hits"].pop()),
    "which of them were cited": (
        lambda v: any(hit.cited for hit in v.record.hits),  # type: ignore[union-attr]
        _in_record(",1],", ",0],"),
    ),
    "under which word each stood": (
        lambda v: v.record.hits[0].word > 1 << 27,
        _in_record(",1342", ",1341"),
    ),  # type: ignore[union-attr]
    "in which state of the index": (
        lambda v: len(_said(v).index.snapshot) == 32,
        _in_record('"snapshot":"', '"snapshot":"A'),
    ),
    "that each stood in it": (
        lambda v: Check.STATE in v.passed and not v.unproved,
        lambda fields: fields["hits"][0].update(proof=fields["hits"][1]["proof"]),
    ),
    "from which minute each word held": (
        lambda v: Check.STATE in v.passed,
        lambda fields: fields["hits"][0]["proof"].update({"from": fields["hits"][0]["proof"]["from"] - 1}),
    ),
    "that this log signed it": (
        lambda v: Check.SIGNATURE in v.passed,
        lambda fields: fields.update(proof=fields["proof"][:-12] + "AAAA" + fields["proof"][-8:]),
    ),
}


@pytest.mark.parametrize(("holds", "lie"), CLAIMS.values(), ids=CLAIMS)
def test_a_receipt_proves(
    answered: tuple[bytes, str],
    holds: Callable[[Verification], bool],
    lie: Callable[[dict[str, Any]], None],
) -> None:
    """The claim holds on the receipt as issued; altered in this alone, and written canonically, it does not verify."""
    data, vkey = answered
    verification = verify_receipt(data, vkey)
    assert verification.verdict is Verdict.VERIFIED
    assert holds(verification)
    fields = json.loads(data)
    lie(fields)
    altered = encoding.encode(fields) + b"\n"
    assert altered != data
    assert verify_receipt(altered, vkey).verdict is Verdict.FAILED


def test_every_passage_satisfies_the_masks_of_role_and_purpose(
    engine: Engine, answered: tuple[bytes, str]
) -> None:
    """Derived again from the table, not believed from the record."""
    record = verify_receipt(*answered).record
    assert record is not None
    found = replay(record, engine.profile.table)
    assert found.verdict is ReplayVerdict.MATCHES
    assert "FORBIDDEN:SUPERSEDED" in found.withheld


def test_the_state_proof_needs_nothing_but_sha_256(answered: tuple[bytes, str]) -> None:
    """Checked here in a dozen lines, from the text of ``carag.audit.state.proof`` alone."""
    fields = json.loads(answered[0])
    record = json.loads(fields["record"])
    for shown, (_, word, _, _) in zip(fields["hits"], record["hits"], strict=True):
        proof = shown["proof"]
        salt = encoding.unb64url(proof["until"]["salt"], 32)
        until = b"carag/commit/v1\0until\0" + proof["until"]["value"].encode()
        inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in salt.ljust(64, b"\0")) + until).digest()
        seal = hashlib.sha256(bytes(byte ^ 0x5C for byte in salt.ljust(64, b"\0")) + inner).digest()
        text = encoding.b64url(hashlib.sha256(shown["text"].encode()).digest())
        chunk, since, sealed = shown["chunk"], proof["from"], encoding.b64url(seal)
        entry = f'{{"c":"{chunk}","f":{since},"p":{word},"t":"{text}","u":"{sealed}"}}'
        current = hashlib.sha256(b"\0" + entry.encode()).digest()
        path = encoding.unb64url(proof["path"], 32 * len(proof["sides"]))
        for at, side in enumerate(proof["sides"]):
            sibling = path[32 * at : 32 * at + 32]
            pair = sibling + current if side == "L" else current + sibling
            current = hashlib.sha256(b"\1" + pair).digest()
        assert encoding.b64url(current) == record["index"]["snapshot"]
        assert proof["from"] <= record["as_of"] < int(proof["until"]["value"])


def test_who_asks_about_the_past_learns_no_end(engine: Engine) -> None:
    """A receipt as of an earlier day proves the words of that day and seals until when they held."""
    for day in (date(2024, 6, 1), date(2025, 2, 1)):
        past = engine.retrieve(QUESTION, Session(role="buy_side", purpose="invest", as_of=day), 40)
        verification = verify_receipt(past.receipt.to_bytes(), engine.vkey)
        assert (verification.verdict, verification.unproved) == (Verdict.VERIFIED, ())
        assert all(isinstance(proof.until, bytes) for proof in past.receipt.proofs)
        assert {type(hit["proof"]["until"]) for hit in json.loads(past.receipt.to_bytes())["hits"]} == {str}
    now = engine.retrieve(QUESTION, ANA, 40)
    assert not any(isinstance(proof.until, bytes) for proof in now.receipt.proofs)


def test_a_label_that_ended_is_sealed_for_who_asks_before(engine: Engine) -> None:
    """Some passage of the past was relabelled later; its receipt does not hold the minute."""
    early = Session(role="compliance", purpose="surveil", as_of=date(2025, 3, 31))
    past = engine.retrieve(QUESTION, early, 200)
    ended = [one for one in past.passages if one.expires_at < 0xFFFF_FFFF]
    assert ended
    data = past.receipt.to_bytes()
    assert not [one for one in ended if b'"value":"%d"' % one.expires_at in data]


def test_a_record_says_what_was_known_and_proves_it(tmp_path: Path, small_corpus: Path) -> None:
    """What is asked between two runs of ingestion is proved in that state, then and when it is asked again."""
    files = sorted(small_corpus.glob("*.txt"))
    random.Random(5).shuffle(files)  # noqa: S311
    with Engine.open(tmp_path / "store", embedder="wordllama") as engine:
        for n in range(3 if SIZE != "quick" else 2):
            portion = tmp_path / f"portion-{n}"
            portion.mkdir()
            for file in files[n::4]:
                shutil.copy(file, portion)
        engine.ingest(tmp_path / "portion-0")
        first = engine.retrieve(QUESTION, AUDITOR, 60)
        between = datetime.now(UTC)
        engine.ingest(tmp_path / "portion-1")
        again = engine.retrieve(QUESTION, replace(AUDITOR, known_at=between, as_of=between), 60)
        later = engine.retrieve(QUESTION, AUDITOR, 60)
        states = []
        for result in (first, again, later):
            verification = verify_receipt(result.receipt.to_bytes(), engine.vkey)
            assert (verification.verdict, verification.unproved) == (Verdict.VERIFIED, ())
            states.append(_said(verification).index.snapshot)
        assert [one.chunk_id for one in first.passages] == [one.chunk_id for one in again.passages]
        assert states[0] == states[1] != states[2]
        swapped = json.loads(first.receipt.to_bytes())
        proofs = {hit["chunk"]: hit["proof"] for hit in json.loads(later.receipt.to_bytes())["hits"]}
        common = next(hit for hit in swapped["hits"] if hit["chunk"] in proofs)
        common["proof"] = proofs[common["chunk"]]
        verification = verify_receipt(encoding.encode(swapped) + b"\n", engine.vkey)
        assert (verification.verdict, verification.stopped_at) == (Verdict.FAILED, Check.STATE)


def test_log_and_store_tell_which_passages_without_a_receipt(
    engine: Engine, answered: tuple[bytes, str]
) -> None:
    """The record's digests lead back to the chunks, and to none for a passage that never was."""
    verification = verify_receipt(*answered)
    assert verification.record is not None
    wanted = tuple(chunk for chunk, _ in verification.passages)
    assert engine._collection.state.chunk_ids(verification.record) == wanted
    hits = (replace(verification.record.hits[0], digest=bytes(20)), *verification.record.hits[1:])  # type: ignore[call-arg]
    strange = replace(verification.record, hits=hits)
    assert engine._collection.state.chunk_ids(strange) == (None, *wanted[1:])


def test_no_proof_no_passage(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """If index and state disagree about a passage, the failure is on record and nothing is returned."""
    before = engine._log.size
    row = next(iter(engine._collection.store.labels.snapshot()))
    found = retriever.passage_of
    monkeypatch.setattr(retriever, "passage_of", lambda *of: replace(found(*of), text_sha256=row[1]))
    with pytest.raises(Exception, match="another label"):
        engine.retrieve(QUESTION, ANA)
    event = engine._log.record(before).event
    assert (event.outcome.value, event.why) == ("error", "CORRUPT_FILE")  # type: ignore[union-attr]


def test_a_record_is_small(answered: tuple[bytes, str]) -> None:
    """At most 1,344 bytes for an answer from eight passages."""
    record = json.loads(answered[0])["record"]
    assert len(record.encode()) <= 1_344
    assert as_of_minutes(datetime.now(UTC) + timedelta(minutes=1)) > json.loads(record)["as_of"]


def test_what_was_read_in_a_question_goes_with_it(tmp_path: Path, ingested: Path) -> None:
    """Out of a receipt and out of the log, for it is in the question's own words."""
    asked = "What were net sales of Harrowgate Components for fiscal 2023?"
    with Engine.open(shutil.copytree(ingested, tmp_path / "store")) as engine:
        answer = engine.ask(asked, Session(role="buy_side", purpose="invest"))
        vkey = engine.vkey
    whole = answer.receipt.to_bytes()
    assert verify_receipt(whole, vkey).values["reading"] == answer.understood == "Harrowgate Components; 2023"
    less = verify_receipt(redact(whole, drop={"query"}), vkey)
    assert less.verdict is Verdict.VERIFIED
    assert {"query", "reading"} <= set(less.withheld)
    people = {"actor": "officer", "approver": "counsel"}
    with AuditLog.open(tmp_path / "store") as log:
        seq = answer.receipt.seq
        assert {"query", "reading"} <= set(log.private.openings(seq))
        event = log.record(
            erase(log, records=[seq], fields=["query"], basis=Basis.LEGAL_OBLIGATION, **people).seq
        ).event
        assert isinstance(event, Erasure)
        assert event.fields == ("query", "reading")
        assert {"query", "reading"}.isdisjoint(log.private.openings(seq))
