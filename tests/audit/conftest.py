"""Builders for the audit room's tests: plain values in, events, logs and forged receipts out."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import sqlite3
from types import SimpleNamespace

import pytest

from carag.audit import (
    Access,
    AuditLog,
    Checkpoint,
    InclusionProof,
    IndexState,
    Ingest,
    Label,
    Models,
    Opening,
    Outcome,
    Passage,
    PolicyApplied,
    Receipt,
    Record,
    RecordKind,
    SessionSource,
    SigningKey,
    StateProof,
    StateView,
    text_hash,
)
from carag.audit.tlog.merkle import leaf_hash, node_hash

ORIGIN = "audit.example/test"
WORD = 1 << 27 | 0x21  # version 1, two policy bits
SECRETS = {
    "subject": "ana@bank.example",
    "query": 'What did the filer\'s "margin" do?',
    "answer": "It fell — 3 %.",
}
NARROWED = {"where": '{"team":["risk"],"year":{"gte":2024}}'}


def access(**changes):
    values = {
        "kind": RecordKind.QUERY,
        "started": 1_763_755_555_123_456,
        "ended": 1_763_755_556_345_678,
        "role": "buy_side",
        "purpose": "invest",
        "source": SessionSource.ASSERTED,
        "as_of": 29_395_925,
        "policy": PolicyApplied(table=b"T" * 32, masks=((0x20, 0x10000), (0x01, 0x10000))),
        "index": IndexState(snapshot=state().root, admissible=417, plan="exact"),
        "models": Models("minilm-l6-v2-int8", "extractive", "bucket-prompt-1"),
        "outcome": Outcome.ANSWER,
        "why": "OK",
    }
    return Access(**{**values, **changes})


def refusal(**changes):
    nothing = {"policy": PolicyApplied(b"T" * 32), "index": None, "models": Models()}
    return access(**{**nothing, "outcome": Outcome.REFUSE, "why": "UNKNOWN_ROLE", "role": None, **changes})


def ingest(**changes):
    values = {"started": 1, "ended": 2, "documents": 30, "chunks": 400, "quarantined": 1, "rows": 400}
    digests = {"snapshot": b"S" * 32, "table": b"T" * 32, "embed": "minilm-l6-v2-int8", "why": "INGESTED"}
    return Ingest(**{**values, **digests, **changes})


def passages(count=2):
    return [
        Passage(
            f"0000320193-23-{n:06d}#{n}",
            f"Passage {n}: net sales\tfell “{n}” %.\n",
            0.75 - n / 64,
            WORD,
            n == 0,
        )
        for n in range(count)
    ]


STATE_KEY = b"K" * 32


def place_of(one):
    """Place a label by its bare hash: a verifier never asks, and what was signed once keeps its root."""
    return int.from_bytes(hashlib.sha256(f"{one.chunk}\n{one.since}".encode()).digest())


def label(passage, **changes):
    values = {"word": passage.word, "since": 29_000_000, "until": 30_000_000, **changes}
    return Label(passage.chunk, text_hash(passage.text), **values)


def state():
    """Make a state of nine labels, those of the passages among them."""
    labels = [label(passage) for passage in passages(9)]
    return StateView.of({place_of(one): one.leaf(STATE_KEY) for one in labels})


def prove(one, view=None):
    """Prove a label."""
    [(_, path, sides)] = (view or state()).paths([place_of(one)])
    return StateProof(one.since, one.seal(STATE_KEY), path, sides)


def proofs():
    """Prove the passages."""
    return tuple(prove(label(passage)) for passage in passages())


def ask(log, **changes):
    """Append one whole answered question."""
    receipt = log.append(access(**changes), secrets=SECRETS, passages=passages())
    return dataclasses.replace(receipt, proofs=proofs())


def open_log(directory, **changes):
    ticks = itertools.count(1_763_755_557_000_000, 1000)
    return AuditLog.open(directory, **{"origin": ORIGIN, "clock": lambda: next(ticks), **changes})


def forge(record=None, *, body=None, key=None, origin=None, shown=None, openings=None, index=1):
    """Sign a two-record tree around any record at all, as a dishonest or broken log could."""
    key = key or SigningKey(ORIGIN, b"k" * 32)
    body = record.to_bytes() if body is None else body
    first = leaf_hash(b"an earlier record")
    root = node_hash(first, leaf_hash(body))
    note = key.sign(Checkpoint(origin or key.name, 2, root).to_text())
    proof = InclusionProof(index, (first,), note).to_text()
    if openings is None:
        openings = {name: Opening(b"s" * 32, {**SECRETS, **NARROWED}[name]) for name in record.commitments}
    texts = [(passage.chunk, passage.text) for passage in passages()] if shown is None else shown
    proved = proofs() if shown is None else ()
    return Receipt(index, body, proof, openings, tuple(texts), proved), str(key.verifier)


def record(**changes):
    """Make the record that ``forge`` signs by default; it is in order."""
    values = {
        "log": ORIGIN,
        "seq": 1,
        "id": b"i" * 16,
        "committed": 1_763_755_557_000_000,
        "event": access(),
        "commitments": {name: Opening(b"s" * 32, value).commitment(name) for name, value in SECRETS.items()},
        "hits": tuple(passage.hit for passage in passages()),
    }
    return Record(**{**values, **changes})


def forge_over(labels, **changes):
    """Sign a record whose index state holds these labels, with proofs of the first two."""
    view = StateView.of({place_of(one): one.leaf(STATE_KEY) for one in labels})
    event = access(index=IndexState(view.root, 417, "exact"), **changes)
    receipt, vkey = forge(record(event=event))
    return dataclasses.replace(receipt, proofs=tuple(prove(one, view) for one in labels[:2])), vkey


def grow(log, count):
    return [ask(log) for _ in range(count)]


def edit(path, *statements):
    """Do to a closed file what an attacker with access to it could."""
    with sqlite3.connect(path) as connection:
        for statement in statements:
            if callable(statement):
                statement(connection)
            else:
                connection.execute(*statement if isinstance(statement, tuple) else (statement,))
    connection.close()


@pytest.fixture(scope="session")
def build():
    """Give tests the builders of this file."""
    return SimpleNamespace(
        ORIGIN=ORIGIN,
        NARROWED=NARROWED,
        SECRETS=SECRETS,
        WORD=WORD,
        access=access,
        ask=ask,
        edit=edit,
        forge=forge,
        forge_over=forge_over,
        grow=grow,
        ingest=ingest,
        label=label,
        open_log=open_log,
        passages=passages,
        place_of=place_of,
        proofs=proofs,
        prove=prove,
        record=record,
        refusal=refusal,
        state=state,
    )
