"""Records: one byte string each, and nothing personal in it."""

from __future__ import annotations

import dataclasses
import hashlib
import math

import pytest
from hypothesis import Phase, example, find, given, settings
from hypothesis import strategies as st

from carag.audit import (
    Access,
    BackendState,
    Basis,
    Denial,
    DocumentErasure,
    EntityRule,
    Evaluation,
    GlassBroken,
    GroupChange,
    HeadRows,
    Hit,
    IndexChange,
    IndexState,
    Ingest,
    ListKind,
    ModelChange,
    Models,
    Move,
    Opening,
    Outcome,
    Passage,
    PolicyApplied,
    PolicyChange,
    Record,
    RecordKind,
    Recovery,
    RowsIn,
    SessionSource,
    text_hash,
)
from carag.audit.tlog import encoding
from carag.errors import CorruptFile, InvalidArgument

DIGESTS = st.binary(min_size=32, max_size=32)
CODES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,63}", fullmatch=True)
LABELS = st.text(st.characters(categories=["L", "N", "P"], max_codepoint=0x2FFF), min_size=1, max_size=30)
COUNTS = st.integers(0, 2**53 - 1)
MASKS = st.tuples(st.integers(0, 2**27 - 1), st.integers(0, 2**27 - 1)).map(lambda m: (m[0] & ~m[1], m[1]))
MEASURED = (st.integers(-1_000_000, 1_000_000), st.integers(0, 2**32 - 1), st.booleans())
HITS = st.builds(Hit, st.binary(min_size=20, max_size=20), *MEASURED)
HEADS = st.builds(HeadRows, *[st.integers(1, 2**53 - 1)] * 4)
RULES = st.none() | st.builds(EntityRule, st.sampled_from(ListKind), COUNTS)
PAIRS = st.lists(MASKS, max_size=8).map(tuple)
POLICIES = st.builds(
    lambda more, rule, **rest: PolicyApplied(reopened=more, reopened_entities=rule if more else None, **rest),
    more=PAIRS,
    rule=RULES,
    table=DIGESTS,
    masks=PAIRS,
    entities=RULES,
    cooling=COUNTS,
)
MODELS = st.builds(Models, *[st.none() | LABELS] * 4)
SOURCES = st.just((SessionSource.ASSERTED, None, None)) | st.tuples(
    st.just(SessionSource.VERIFIED), st.none() | LABELS, st.none() | LABELS
)
BACKENDS = st.builds(
    BackendState,
    LABELS,
    LABELS,
    COUNTS,
    DIGESTS,
    st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=3).map(tuple),
)
ACCESSES = st.builds(
    lambda known, **rest: Access(source=known[0], issuer=known[1], audience=known[2], **rest),
    known=SOURCES,
    kind=st.sampled_from(Access.KINDS),
    started=COUNTS,
    ended=COUNTS,
    role=st.none() | CODES,
    purpose=st.none() | CODES,
    as_of=st.integers(0, 2**32 - 1),
    policy=POLICIES,
    index=st.none() | st.builds(IndexState, DIGESTS, COUNTS, CODES, st.none() | COUNTS, st.none() | BACKENDS),
    models=MODELS,
    intents=st.lists(CODES, max_size=3).map(tuple),
    where=st.lists(CODES, max_size=3).map(tuple),
    heads=st.lists(HEADS, max_size=3).map(tuple),
    outcome=st.sampled_from(Outcome),
    why=CODES,
)
INGESTS = st.builds(
    Ingest,
    started=COUNTS,
    ended=COUNTS,
    documents=COUNTS,
    chunks=COUNTS,
    quarantined=COUNTS,
    rows=COUNTS,
    snapshot=DIGESTS,
    table=DIGESTS,
    embed=st.none() | LABELS,
    why=CODES,
)
GATES = st.integers(-1_000_000, 1_000_000)
TIMES = st.lists(COUNTS, min_size=2, max_size=2).map(sorted)
DENIALS = st.builds(
    lambda when, count, **rest: Denial(
        first=when[0], last=when[0] if count == 1 else when[1], count=count, **rest
    ),
    when=TIMES,
    count=st.integers(1, 2**53 - 1),
    why=CODES,
    issuer=st.none() | LABELS,
    audience=st.none() | LABELS,
)
HELD = st.builds(RowsIn, LABELS, LABELS, COUNTS)
CHANGES = {
    RecordKind.INGEST: INGESTS,
    RecordKind.POLICY: st.builds(
        PolicyChange, at=COUNTS, table=DIGESTS, before=st.none() | DIGESTS, why=CODES
    ),
    RecordKind.MODEL: st.builds(
        ModelChange,
        at=COUNTS,
        models=MODELS,
        gate=GATES,
        before=st.none() | MODELS,
        before_gate=st.none() | GATES,
        why=CODES,
    ),
    RecordKind.INDEX: st.builds(
        IndexChange, at=COUNTS, snapshot=DIGESTS, before=DIGESTS, rows=COUNTS, why=CODES
    ),
    RecordKind.GLASS: st.builds(
        lambda when, **rest: GlassBroken(at=when[0], until=when[1], **rest),
        when=TIMES.filter(lambda when: when[0] < when[1]),
        role=CODES,
        purpose=CODES,
        source=st.sampled_from(SessionSource),
    ),
    RecordKind.MOVE: st.builds(
        Move, at=COUNTS, before=st.none() | HELD, after=HELD, rows=COUNTS, root=DIGESTS, why=CODES
    ),
    RecordKind.GROUPS: st.builds(
        GroupChange, at=COUNTS, opened=COUNTS, closed=COUNTS, added=COUNTS, why=CODES
    ),
    RecordKind.EVALUATION: st.builds(
        Evaluation,
        started=COUNTS,
        ended=COUNTS,
        suite=CODES,
        suite_hash=DIGESTS,
        snapshot=DIGESTS,
        table=DIGESTS,
        result=DIGESTS,
        passed=st.booleans(),
        thresholds=st.dictionaries(
            st.from_regex(r"[a-z][a-z0-9_]{0,63}", fullmatch=True),
            st.integers(-(2**53) + 1, 2**53 - 1),
            max_size=4,
        ),
    ),
}
ERASURES = {
    RecordKind.DOCUMENTS: st.builds(
        DocumentErasure,
        basis=st.sampled_from(Basis),
        ids=st.lists(DIGESTS, min_size=1, max_size=3, unique=True).map(tuple),
        passages=COUNTS,
        before=DIGESTS,
        after=DIGESTS,
        answers=COUNTS,
        kept=st.sets(COUNTS, max_size=3).map(sorted).map(tuple),
        places=st.lists(CODES, max_size=3).map(tuple),
        beyond=st.lists(CODES, max_size=3).map(tuple),
    )
}
ALONE = {RecordKind.RECOVERY: st.builds(Recovery, CODES), RecordKind.DENIAL: DENIALS}
"""Events of records that commit to nothing."""
ENVELOPE = {"log": CODES, "seq": COUNTS, "id": st.binary(min_size=16, max_size=16), "committed": COUNTS}
RECORDS = (
    st.builds(
        Record,
        **ENVELOPE,
        event=ACCESSES,
        commitments=st.dictionaries(st.sampled_from(["subject", "query", "answer", "entities"]), DIGESTS),
        hits=st.lists(HITS, max_size=4).map(tuple),
    )
    | st.builds(
        Record,
        **ENVELOPE,
        event=st.one_of(*CHANGES.values()),
        commitments=st.dictionaries(st.just("subject"), DIGESTS),
    )
    | st.builds(
        Record,
        **ENVELOPE,
        event=st.one_of(*ERASURES.values()),
        commitments=st.dictionaries(st.sampled_from(DocumentErasure.COMMITS), DIGESTS),
    )
    | st.builds(Record, **ENVELOPE, event=st.one_of(*ALONE.values()))
)


BACKEND = BackendState("native 1", "rows", 9, b"D" * 32, (("0", "here"), ("1", "there")))
WHOLE = Record(
    "log.example",
    3,
    b"i" * 16,
    4,
    Access(
        kind=RecordKind.QUERY,
        started=1,
        ended=2,
        role="dpo",
        purpose="dsar",
        source=SessionSource.VERIFIED,
        as_of=5,
        policy=PolicyApplied(
            b"T" * 32,
            ((1, 2),),
            EntityRule(ListKind.ALLOW, 3, 4),
            ((4, 8),),
            EntityRule(ListKind.DENY, 5),
            cooling=6,
        ),
        index=IndexState(b"S" * 32, 7, "exact", 8, BACKEND),
        outcome=Outcome.ANSWER,
        why="DRILL",
        models=Models("a", "b", "c", "d"),
        intents=("LATEST",),
        issuer="login.example",
        audience="carag",
        begun=2,
        glass=1,
    ),
    {"query": b"q" * 32},
    (Hit(b"h" * 20, -1, 1 << 27, True),),
    retain="fin5y",
)
"""With every member that a record of an access may have."""


def bound(number, minute, bits, word, similarity):
    """Build a record whose numbers are all the least, or the greatest, that they can be."""
    masks, allowed = ((bits, 0),), EntityRule(ListKind.ALLOW, number, number)
    policy = PolicyApplied(b"T" * 32, masks, allowed, ((0, bits),), cooling=number)
    changes = {"started": number, "ended": number, "as_of": minute, "policy": policy, "begun": number}
    index = IndexState(b"S" * 32, number, "exact", number, dataclasses.replace(BACKEND, epoch=number))
    event = dataclasses.replace(WHOLE.event, index=index, **changes)
    hit = Hit(b"h" * 20, similarity, word, False)
    return dataclasses.replace(WHOLE, seq=number, committed=number, event=event, hits=(hit,))


@given(RECORDS)
@example(WHOLE)
@example(bound(0, 0, 0, 0, -1_000_010))
@example(bound(2**53 - 1, 2**32 - 1, 2**27 - 1, 2**32 - 1, 1_000_010))
def test_round_trip(record):
    """A record comes back from its bytes, its bytes from it, and its place from a look at them."""
    body = record.to_bytes()
    assert Record.parse(body) == record
    assert Record.parse(body).to_bytes() == body
    assert Record.place(body) == (record.log, record.seq, record.committed)


OTHERS = {"BEGIN", "ANCHOR", "KEY", "ERASURE", "HOLD", "DISCLOSURE"}  # in files and tests of their own


def test_every_kind_of_record_is_tried():
    """The strategy above makes every kind there is; a new kind without one shows here."""
    assert {*Access.KINDS, *CHANGES, *ERASURES, *ALONE} == {
        kind for kind in RecordKind if kind.name not in OTHERS
    }
    drawn = settings(max_examples=10, phases=[Phase.generate], database=None)
    for kind, events in (CHANGES | ERASURES | ALONE).items():
        assert find(events, lambda _: True, settings=drawn).kind is kind


OPTIONAL = (
    "audience backend begins begun cooling day denied entities heads intents issuer known rank read "
    "reopened reopened_entities rerank retain where"
)
"""Keys that records without what they say have not."""


@given(RECORDS, st.data())
def test_no_other_value_is_read_as_a_record(record, data):
    """A key left out, renamed or added, or a value of another type, at any depth of any kind: refused."""
    fields = encoding.decode(record.to_bytes())
    place = data.draw(st.sampled_from(list(_objects(fields))))
    if place is not fields.get("commitments") and place is not fields.get("thresholds"):
        change = data.draw(st.sampled_from(["add", "drop", "retype"]))
        name = data.draw(st.sampled_from(sorted(place)))
        if change == "add":
            place["zzz"] = 1
        elif change == "drop" and name not in OPTIONAL.split():
            del place[name]
        else:
            place[name] = {"zzz": [1]}
        with pytest.raises(CorruptFile):
            Record.parse(encoding.encode(fields))


def _objects(value):
    if isinstance(value, dict):
        if value:
            yield value
        for item in value.values():
            yield from _objects(item)
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)


def test_the_layout_is_the_documented_one(build):
    """The keys of a record are fixed: they are what an auditor's own tools will look for."""
    fields = encoding.decode(build.record().to_bytes())
    envelope = "commitments hits id kind log seq tc v"
    asked = "as_of index models outcome policy purpose role source t0 t1 why"
    assert sorted(fields) == sorted(f"{envelope} {asked}".split())
    digest = hashlib.sha256(
        b"carag/hit/v1\0" + build.passages()[0].chunk.encode() + b"\0" + text_hash(build.passages()[0].text)
    ).digest()[:20]
    assert fields["hits"][0] == [encoding.b64url(digest), build.WORD, 750_000, 1]
    assert fields["policy"]["masks"] == [[0x20, 0x10000], [0x01, 0x10000]]


def test_a_record_of_eight_hits_is_small(build):
    """At most 1,280 bytes without hit proofs: asked under a verified token, answered from eight passages."""
    passages = build.passages(8)
    record = build.record(
        log="carag.example/audit/prod-1",
        seq=1_234_567,
        event=build.access(
            role="sell_side",
            purpose="publish",
            source=SessionSource.VERIFIED,
            issuer="https://login.bank.example",
            audience="carag",
            index=IndexState(b"S" * 32, 26_595, "certified", 1_763_755_555_123_456),
            models=Models("minilm", "extractive", encoding.b64url(b"P" * 32)),
        ),
        hits=tuple(passage.hit for passage in passages),
    )
    assert len(record.hits) == 8
    assert len(record.to_bytes()) <= 1_280


def test_a_list_is_recorded_by_kind_and_length_alone(build):
    """Who is on it is not in the record, not even as a bare hash that trying every company would open."""
    rule = EntityRule(ListKind.DENY, 2)
    policy = PolicyApplied(b"T" * 32, ((0, 0x4000),), rule, ((0x100, 0x4000),), rule, cooling=60)
    lists = Opening(b"s" * 32, '[{"deny":[0,320193]}]').commitment("entities")
    commitments = {**build.record().commitments, "entities": lists}
    record = build.record(event=build.access(policy=policy, intents=("LATEST",)), commitments=commitments)
    fields = encoding.decode(record.to_bytes())
    assert fields["policy"]["entities"] == {"count": 2, "kind": "deny"}
    assert (fields["policy"]["cooling"], fields["intents"]) == (60, ["LATEST"])
    keys = ["cooling", "entities", "masks", "reopened", "reopened_entities", "table"]
    assert sorted(fields["policy"]) == keys
    assert policy.admits(1 << 27 | 0x100)
    assert not PolicyApplied(b"T" * 32, ((0, 0x100),)).admits(1 << 27 | 0x100)
    assert PolicyApplied(b"T" * 32, ((0, 0x100),), reopened=((0x100, 0),)).admits(1 << 27 | 0x100)
    assert not list(record.contradictions())
    assert Record.parse(record.to_bytes()) == record


def test_nothing_in_clear(build):
    """Subject, question and answer do not occur in the record, nor does a passage's text."""
    body = build.record().to_bytes().decode()
    assert not any(value in body for value in [*build.SECRETS.values(), *(p.text for p in build.passages())])


BROKEN = {
    "an unknown key": lambda f: f.update(extra=1),
    "a hit with more in it": lambda f: f["hits"][0].append(1),
    "a hit with less in it": lambda f: f["hits"][0].pop(),
    "a hit that is an object": lambda f: f["hits"].__setitem__(0, {"p": 1, "s": 1}),
    "an empty list of intents": lambda f: f.update(intents=[]),
    "an empty list of fields": lambda f: f.update(where=[]),
    "an issuer of an asserted session": lambda f: f.update(issuer="https://login.example"),
    "a missing key": lambda f: f.pop("why"),
    "a missing list of hits": lambda f: f.pop("hits"),
    "an unknown version": lambda f: f.update(v=2),
    "no version": lambda f: f.pop("v"),
    "a version in a list": lambda f: f.update(v=[1]),
    "an unknown kind": lambda f: f.update(kind="quary"),
    "the kind of another event": lambda f: f.update(kind="ingest"),
    "an unknown outcome": lambda f: f.update(outcome="maybe"),
    "an unknown source": lambda f: f.update(source="guessed"),
    "a number for a text": lambda f: f.update(role=5),
    "a text for a number": lambda f: f.update(seq="1"),
    "a cited flag of 2": lambda f: f["hits"][0].__setitem__(3, 2),
    "a 33-bit word": lambda f: f["hits"][0].__setitem__(1, 1 << 32),
    "a short hash": lambda f: f["hits"][0].__setitem__(0, "QUJD"),
    "a mask of three": lambda f: f["policy"]["masks"][0].append(1),
    "nine masks": lambda f: f["policy"].update(masks=[[0, 0]] * 9),
    "a bit required and forbidden": lambda f: f["policy"]["masks"][0].__setitem__(1, 0x20),
    "a commitment to something else": lambda f: f["commitments"].update(colour=f["commitments"]["query"]),
    "a list for an object": lambda f: f.update(policy=[]),
    "a list of commitments": lambda f: f.update(commitments=[]),
}


@pytest.mark.parametrize("breaking", BROKEN.values(), ids=BROKEN)
def test_what_is_not_a_record_is_refused(build, breaking):
    """Canonical JSON that is not exactly a record is not read as one."""
    fields = encoding.decode(build.record().to_bytes())
    breaking(fields)
    with pytest.raises(CorruptFile):
        Record.parse(encoding.encode(fields))


@pytest.mark.parametrize("body", [b"[]", b"5", b"null", b'"record"', b"{}", b""])
def test_other_values_are_refused(body):
    """A record is an object with its keys."""
    with pytest.raises(CorruptFile):
        Record.parse(body)


@pytest.mark.parametrize(
    "values",
    [
        {"role": "free text"},
        {"role": ""},
        {"role": "x" * 65},
        {"purpose": "invest\n"},
        {"why": "the margin of ana@bank.example fell"},
        {"intents": ("two words",)},
        {"as_of": -1},
        {"as_of": 1.5},
        {"as_of": 1 << 32},
        {"started": True},
        {"kind": RecordKind.INGEST},
        {"kind": "else"},
        {"outcome": "else"},
        {"source": "else"},
        {"issuer": "https://login.example"},
        {"source": SessionSource.VERIFIED, "issuer": ""},
        {"source": SessionSource.VERIFIED, "audience": "a\nb"},
    ],
    ids=" and ".join,
)
def test_an_event_takes_codes_and_integers_only(build, values):
    """Prose, empty codes and other types never get as far as the log."""
    with pytest.raises(InvalidArgument):
        build.access(**values)


@pytest.mark.parametrize("similarity", [math.nan, math.inf, 1.1, -1.1, "near", None])
def test_a_similarity_is_a_cosine(similarity):
    """Anything else is refused, not rounded into one."""
    with pytest.raises(InvalidArgument):
        _ = Passage("c", "text", similarity, 0).hit


@pytest.mark.parametrize("text", ["\ud800", None, b"bytes"])
def test_a_passage_is_text(text):
    """Only text that UTF-8 can carry has a hash."""
    with pytest.raises(InvalidArgument):
        _ = Passage("c", text, 0.5, 0).hit
