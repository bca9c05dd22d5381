"""Every kind of record: its bytes as they were first written, and values that no event takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from carag.audit import (
    Access,
    Anchored,
    BackendState,
    Basis,
    Denial,
    Disclosure,
    DocumentErasure,
    EntityRule,
    Erasure,
    Evaluation,
    GlassBroken,
    GroupChange,
    HeadRows,
    Hold,
    HoldAction,
    HoldScope,
    IndexChange,
    IndexState,
    KeyAction,
    KeyChange,
    ListKind,
    ModelChange,
    Models,
    Move,
    Outcome,
    PolicyApplied,
    PolicyChange,
    Record,
    RecordKind,
    Recovery,
    RowsIn,
    SessionSource,
)
from carag.errors import InvalidArgument
from tests.audit.records.test_begin import begin

GOLDEN = Path(__file__).parents[1] / "golden"


def test_records_keep_their_bytes(build):
    """The builder's record, one of every other kind, and nothing else, byte for byte as when they were first made."""
    bodies = (GOLDEN / "records-v1.jsonl").read_bytes().splitlines()
    records = [
        *one_of_each(build),
        *of_the_log_itself(build),
        *with_every_member(build),
        *under_glass(build),
        *of_documents(build),
        build.record(event=build.access(models=Models("minilm", read="reader 1 0.12")), retain="fin5y"),
    ]
    assert {record.kind for record in records} == {*RecordKind} - {RecordKind.RETRIEVE, RecordKind.EXPLAIN}
    assert [record.to_bytes() for record in records] == bodies
    assert [Record.parse(body) for body in bodies] == records


def one_of_each(build):
    """Make the records of the golden file."""
    models = Models("minilm", "extractive", "p")
    digests = {"suite_hash": b"H" * 32, "snapshot": b"S" * 32, "table": b"T" * 32, "result": b"R" * 32}
    verified = {"source": SessionSource.VERIFIED, "issuer": "https://login.example", "audience": "carag"}
    for event in (
        build.access(),
        build.access(**verified),
        build.refusal(),
        build.ingest(),
        PolicyChange(at=1, table=b"T" * 32, before=b"U" * 32, why="TABLE_CHANGED"),
        ModelChange(at=1, models=models, gate=500_000, before=None, before_gate=None, why="FIRST_MODELS"),
        IndexChange(at=1, snapshot=b"S" * 32, before=b"R" * 32, rows=3, why="INDEX_CHANGED"),
        Denial(
            first=1, last=9, count=3, why="TOKEN_SIGNATURE", issuer="https://login.example", audience="carag"
        ),
        Evaluation(
            started=1, ended=2, suite="edgar", passed=True, thresholds={"cvr_millionths": 0}, **digests
        ),
        Recovery("UNFINISHED_APPEND"),
        Move(
            at=1,
            before=None,
            after=RowsIn("postgresql 18.6, pgvector 0.8.6", "filings", 4),
            rows=3,
            root=b"O" * 32,
            why="SWITCHED",
        ),
        GroupChange(at=1, opened=2, closed=0, added=1, why="GROUPS_IMPORTED"),
    ):
        answered = isinstance(event, Access) and event.index is not None
        yield build.record(
            event=event,
            hits=build.record().hits if answered else (),
            commitments=build.record().commitments if answered else {},
        )


def of_the_log_itself(build):
    """Make records of what was done with the log, its keys and its private values."""
    held, released = HoldAction.PLACED, HoldAction.RELEASED
    refused = Disclosure(record=3, fields=(), role=None, outcome=Outcome.REFUSE, why="CURIOUS")
    for event in (
        begin(),
        Anchored(anchor="s3", size=7, evidence=b"E" * 32, seen=9),
        KeyChange(action=KeyAction.ROTATE, algorithm=1, public=b"K" * 32, why="SCHEDULED", until=9),
        KeyChange(action=KeyAction.ADD, algorithm=6, public=b"K" * 1312, why="POST_QUANTUM"),
        KeyChange(action=KeyAction.REVOKE, algorithm=1, public=b"K" * 32, why="STOLEN", good=0),
        Erasure(basis=Basis.REQUEST, count=2, fields=("answer", "query"), records=(3, 5)),
        Erasure(basis=Basis.UNLAWFUL, count=2, fields=("subject",)),
        Hold(action=held, matter="M-1", scope=HoldScope.RECORDS, first=0, last=9),
        Hold(action=released, matter="M-1", scope=HoldScope.SUBJECT, placed=4),
        refused,
        Disclosure(record=3, fields=("query",), role="auditor", outcome=Outcome.ANSWER, why="REVIEW"),
        Recovery("UNENDED_BEGINS", (1, 2)),
        Denial(first=1, last=1, count=1, why="TOKEN_EXPIRED"),
    ):
        yield build.record(event=event, hits=(), commitments={})


def with_every_member(build):
    """Make a request that was answered from a backend under two lists, and a change of all models."""
    backend = BackendState("qdrant 1.15", "filings", 4, b"D" * 32, (("0", "12"), ("1", "9")))
    listed = {"entities": EntityRule(ListKind.ALLOW, 3, 2), "reopened_entities": EntityRule(ListKind.DENY, 1)}
    masks = {"masks": ((0x20, 0x10000), (0x01, 0x10000)), "reopened": ((0x40, 0),)}
    yield build.record(
        event=build.access(
            policy=PolicyApplied(table=b"T" * 32, cooling=60, **masks, **listed),
            index=IndexState(b"S" * 32, 20, "certified", 1_763_755_555_123_456, backend),
            models=Models("minilm", "extractive", "p", "reranker", "fused"),
            intents=("LATEST",),
            where=("team", "year"),
            heads=(HeadRows(1, 2, 0, 9),),
            day="USED",
            begun=2,
        ),
        retain="fin5y",
    )
    changed = ModelChange(
        at=1,
        models=Models(rank="fused"),
        gate=-1,
        before=Models("minilm"),
        before_gate=0,
        why="MODELS_CHANGED",
    )
    yield build.record(event=changed, hits=(), commitments={})


def under_glass(build):
    """Make the record of a broken glass, and a request in the cell that it opened."""
    broken = GlassBroken(at=1, until=9, role="nurse", purpose="emergency", source=SessionSource.ASSERTED)
    said = dict.fromkeys(GlassBroken.COMMITS, b"C" * 32)
    yield build.record(event=broken, hits=(), commitments=said)
    yield build.record(event=build.access(glass=0))


def of_documents(build):
    """Make the records of two erasures of documents: with all that they may say, and with the least."""
    said = dict.fromkeys(DocumentErasure.COMMITS, b"C" * 32)
    yield build.record(event=erased(), hits=(), commitments=said)
    yield build.record(event=erased(ids=(b"I" * 32,), answers=0, kept=(), beyond=()), hits=(), commitments={})


def erased(**changes):
    """State the erasure of two documents, after which one answer stays."""
    values = {
        "basis": Basis.REQUEST,
        "ids": (b"I" * 32, b"J" * 32),
        "passages": 9,
        "answers": 2,
        "kept": (3, 5),
    }
    state = {"before": b"B" * 32, "after": b"A" * 32, "places": ("tables", "index"), "beyond": ("backups",)}
    return DocumentErasure(**{**values, **state, **changes})


BAD_EVENTS = {
    "an erasure of no documents": lambda: erased(ids=()),
    "an erasure of one document twice": lambda: erased(ids=(b"I" * 32, b"I" * 32)),
    "an erasure of 501 documents": lambda: erased(ids=tuple(n.to_bytes(32) for n in range(501))),
    "a document by its name": lambda: erased(ids=("plan.md",)),
    "answers kept out of order": lambda: erased(kept=(5, 3)),
    "an answer kept twice": lambda: erased(kept=(3, 3)),
    "a place in prose": lambda: erased(places=("the tables",)),
    "a glass mended before it was broken": lambda: GlassBroken(
        at=2, until=2, role="nurse", purpose="emergency", source=SessionSource.ASSERTED
    ),
    "no denial": lambda: Denial(first=1, last=1, count=0, why="TOKEN_SIGNATURE"),
    "one denial twice": lambda: Denial(first=1, last=2, count=1, why="TOKEN_SIGNATURE"),
    "denials that end before they began": lambda: Denial(first=2, last=1, count=2, why="TOKEN_SIGNATURE"),
    "a denial in prose": lambda: Denial(first=1, last=1, count=1, why="ana@bank.example had none"),
    "a threshold that is not an integer": lambda: _evaluation(thresholds={"recall": 0.99}),
    "a threshold under a bad name": lambda: _evaluation(thresholds={"Recall @ 8": 1}),
    "a suite in prose": lambda: _evaluation(suite="the suite of last week"),
    "a short result": lambda: _evaluation(result=b"R"),
    "a gate beyond a cosine": lambda: ModelChange(
        at=1, models=Models(), gate=1_000_001, before=None, before_gate=None, why="X"
    ),
    "a short table hash": lambda: PolicyChange(at=1, table=b"T", before=None, why="X"),
    "a move to the same place": lambda: Move(
        at=1, before=None, after=None, rows=1, root=b"O" * 32, why="SWITCHED"
    ),
    "memberships in prose": lambda: GroupChange(at=1, opened="ana", closed=0, added=0, why="X"),
    "a collection on two lines": lambda: RowsIn("postgresql", "a\nb", 1),
    "erased fields in one text": lambda: Erasure(basis=Basis.REQUEST, count=1, fields="query"),
    "thresholds in a list": lambda: _evaluation(thresholds=[("recall", 1)]),
    "models by name": lambda: ModelChange(
        at=1, models="minilm", gate=0, before=None, before_gate=None, why="X"
    ),
    "a shard without a place": lambda: BackendState("qdrant", "filings", 1, b"D" * 32, (("0",),)),
    "a state that was none": lambda: IndexChange(at=1, snapshot=b"S" * 32, before=b"", rows=1, why="X"),
}


def _evaluation(**changes):
    digests = {"suite_hash": b"H" * 32, "snapshot": b"S" * 32, "table": b"T" * 32, "result": b"R" * 32}
    return Evaluation(**{"started": 1, "ended": 2, "suite": "edgar", "passed": True, **digests, **changes})


@pytest.mark.parametrize("make", BAD_EVENTS.values(), ids=BAD_EVENTS)
def test_an_event_out_of_order_is_refused(make):
    """Each of the newer kinds takes codes, integers and hashes in order, and nothing else."""
    with pytest.raises(InvalidArgument):
        make()
