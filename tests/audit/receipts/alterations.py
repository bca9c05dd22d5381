"""Named alterations of receipts and records, for all three verifiers: each with the check that must notice it."""

from __future__ import annotations

import json
import re

from carag.audit import Check
from carag.audit.tlog import encoding
from carag.audit.tlog.encoding import b64, b64url, unb64url
from tests.audit.receipts import mutants
from tests.audit.records.test_record import BACKEND


def altered(data, change):
    """Change the JSON and write it canonically again, so that only the change itself can be noticed."""
    fields = json.loads(data)
    change(fields)
    return encoding.encode(fields) + b"\n"


def in_record(pattern, replacement):
    def change(fields):
        fields["record"], count = re.subn(pattern, replacement, fields["record"], count=1)
        assert count == 1

    return change


def in_proof(pattern, replacement):
    def change(fields):
        fields["proof"], count = re.subn(pattern, replacement, fields["proof"], count=1)
        assert count == 1

    return change


def salt_swap(fields):
    opening = fields["openings"]
    opening["query"]["salt"], opening["answer"]["salt"] = opening["answer"]["salt"], opening["query"]["salt"]


def openings_swap(fields):
    fields["openings"]["query"], fields["openings"]["answer"] = (
        fields["openings"]["answer"],
        fields["openings"]["query"],
    )


def cut(proof, count):
    """Take hashes off a state proof, or add zeros."""
    hashes, sides = unb64url(proof["path"], 32 * len(proof["sides"])), proof["sides"]
    if count < 0:
        return {"path": b64url(hashes + bytes(32)), "sides": sides + "L"}
    return {"path": b64url(hashes[32 * count :]), "sides": sides[count:]}


FIRST_HASH = r"(index \d+\n)(\S)(\S*\n)(\S)(\S*\n)"
FAILED = {
    "record altered": (in_record("buy_side", "sell_side"), Check.INCLUSION),
    "record no longer JSON": (in_record("{", "["), Check.INCLUSION),
    "record emptied": (lambda f: f.update(record=""), Check.INCLUSION),
    "record with a space": (in_record(":", ": "), Check.INCLUSION),
    "record with a duplicate key": (in_record("{", '{"as_of":1,'), Check.INCLUSION),
    "hit word altered in the record": (in_record(",134", ",135"), Check.INCLUSION),
    "sibling altered": (in_proof(r"(index \d+\n)..", r"\1AA"), Check.INCLUSION),
    "sibling removed": (in_proof(r"(index \d+\n)\S+\n", r"\1"), Check.INCLUSION),
    "sibling added": (in_proof(r"(index \d+\n)(\S+\n)", r"\1\2\2"), Check.INCLUSION),
    "siblings swapped": (in_proof(r"(index \d+\n)(\S+\n)(\S+\n)", r"\1\3\2"), Check.INCLUSION),
    "31-byte sibling": (in_proof(r"(index \d+\n)\S+", rf"\1{b64(b'a' * 31)}"), Check.INCLUSION),
    "33-byte sibling": (in_proof(r"(index \d+\n)\S+", rf"\1{b64(b'a' * 33)}"), Check.INCLUSION),
    "index + 1": (in_proof("index 5", "index 6"), Check.INCLUSION),
    "index - 1": (in_proof("index 5", "index 4"), Check.INCLUSION),
    "size + 1": (in_proof(r"\n6\n", r"\n7\n"), Check.SIGNATURE),
    "size - 1": (in_proof(r"\n6\n", r"\n5\n"), Check.SIGNATURE),
    "leading zero in the size": (in_proof(r"\n6\n", r"\n06\n"), Check.SIGNATURE),
    "root altered": (in_proof(r"\n6\n..", r"\n6\nAA"), Check.SIGNATURE),
    "extension line": (in_proof(r"(\n6\n\S+\n)", r"\1more\n"), Check.SIGNATURE),
    "origin altered": (in_proof("audit.example/test\n", "audit.example/tent\n"), Check.SIGNATURE),
    "blank line among the hashes": (in_proof(r"(index \d+\n)", r"\1\n"), Check.SIGNATURE),
    "signature altered": (in_proof(r"(— \S+ \S{20})....", r"\1AAAA"), Check.SIGNATURE),
    "signature cut": (in_proof(r"(— \S+ )(\S{80})\S+", r"\1\2"), Check.SIGNATURE),
    "question altered": (lambda f: f["openings"]["query"].update(value="Another?"), Check.COMMITMENTS),
    "answer altered": (lambda f: f["openings"]["answer"].update(value="It rose."), Check.COMMITMENTS),
    "subject altered": (
        lambda f: f["openings"]["subject"].update(value="ben@bank.example"),
        Check.COMMITMENTS,
    ),
    "salts swapped": (salt_swap, Check.COMMITMENTS),
    "openings swapped": (openings_swap, Check.COMMITMENTS),
    "short salt": (lambda f: f["openings"]["query"].update(salt="QUJD"), Check.COMMITMENTS),
    "salt that is a number": (lambda f: f["openings"]["query"].update(salt=5), Check.COMMITMENTS),
    "value that is a number": (lambda f: f["openings"]["query"].update(value=5), Check.COMMITMENTS),
    "opening with more in it": (lambda f: f["openings"]["query"].update(more=5), Check.COMMITMENTS),
    "opening that is a list": (lambda f: f["openings"].update(query=["salt", "value"]), Check.COMMITMENTS),
    "opening of nothing": (lambda f: f["openings"].update(colour=f["openings"]["query"]), Check.COMMITMENTS),
    "passage text altered": (lambda f: f["hits"][0].update(text="Sales rose."), Check.PASSAGES),
    "passage id altered": (lambda f: f["hits"][0].update(chunk="another#1"), Check.PASSAGES),
    **{
        f"state proof: {name}": (change, Check.STATE)
        for name, change in {
            "that is a text": lambda f: f["hits"][0].update(proof="yes"),
            "that is empty": lambda f: f["hits"][0].update(proof={}),
            "with more in it": lambda f: f["hits"][0]["proof"].update(more=1),
            "of the other passage": lambda f: f["hits"][0].update(proof=f["hits"][1]["proof"]),
            "from another minute": lambda f: f["hits"][0]["proof"].update({"from": 28_999_999}),
            "until another minute": lambda f: f["hits"][0]["proof"]["until"].update(value="30000001"),
            "salt of the other": lambda f: f["hits"][0]["proof"]["until"].update(
                salt=f["hits"][1]["proof"]["until"]["salt"]
            ),
            "seal instead of an opening": lambda f: f["hits"][0]["proof"].update(until=b64url(b"u" * 32)),
            "path altered": lambda f: f["hits"][0]["proof"].update(
                path="AAAA" + f["hits"][0]["proof"]["path"][4:]
            ),
            "path of the other": lambda f: f["hits"][0]["proof"].update(path=f["hits"][1]["proof"]["path"]),
            "path cut": lambda f: f["hits"][0]["proof"].update(cut(f["hits"][0]["proof"], 1)),
            "path emptied": lambda f: f["hits"][0]["proof"].update(path="", sides=""),
            "path with a hash more": lambda f: f["hits"][0]["proof"].update(cut(f["hits"][0]["proof"], -1)),
            "a side turned": lambda f: f["hits"][0]["proof"].update(
                sides=f["hits"][0]["proof"]["sides"].translate({ord("L"): "R", ord("R"): "L"})
            ),
            "an unknown side": lambda f: f["hits"][0]["proof"].update(sides="X"),
            "a side missing": lambda f: f["hits"][0]["proof"].update(
                sides=f["hits"][0]["proof"]["sides"][1:]
            ),
        }.items()
    },
    "passages reordered": (lambda f: f["hits"].reverse(), Check.PASSAGES),
    "passage removed": (lambda f: f["hits"].pop(), Check.PASSAGES),
    "passage added": (lambda f: f["hits"].append(f["hits"][0]), Check.PASSAGES),
    "passage with more in it": (lambda f: f["hits"][0].update(more=5), Check.PASSAGES),
    "passage without the member for its proof": (lambda f: f["hits"][0].pop("proof"), Check.PASSAGES),
    "passage that is a text": (lambda f: f["hits"].__setitem__(0, "Sales rose."), Check.PASSAGES),
}


UNREADABLE = {
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "no newline at the end": lambda data: data[:-1],
    "a second newline": lambda data: data + b"\n",
    "a trailing space": lambda data: data[:-1] + b" \n",
    "a space": lambda data: data.replace(b",", b", ", 1),
    "a duplicate key": lambda data: data.replace(b'{"format"', b'{"format":"carag-receipt/v1","format"'),
    "another format": lambda data: data.replace(b"receipt/v1", b"receipt/v2"),
    "a format that is null": lambda data: altered(data, lambda f: f.update(format=None)),
    "a key more": lambda data: altered(data, lambda f: f.update(more=1)),
    "a key less": lambda data: altered(data, lambda f: f.pop("hits")),
    "hits of another type": lambda data: altered(data, lambda f: f.update(hits={})),
    "an escaped letter": lambda data: data.replace(b"carag-receipt", b"\\u0063arag-receipt"),
    "a proof with CRLF": lambda data: altered(
        data, lambda f: f.update(proof=f["proof"].replace("\n", "\r\n"))
    ),
    "a proof with a trailing space": lambda data: altered(data, in_proof("index 5", "index 5 ")),
    "a proof with an extra line": lambda data: altered(data, in_proof("index", "extra QUJD\nindex")),
    "an empty proof": lambda data: altered(data, lambda f: f.update(proof="")),
    "a list": lambda data: b"[]\n",
    "nothing": lambda data: b"",
}


STATE_LIES = {
    "another word": {"word": 1 << 27 | 0x23},
    "quarantined": {"word": 1 << 30 | 1 << 27 | 0x21},
    "not yet": {"since": 29_395_926},
    "no longer": {"until": 29_395_925},
}


# -- what a lying log signs: rules of docs/reference/receipts.md, broken by name


def in_policy(**changes):
    return lambda fields: fields["policy"].update(changes)


def in_backend(**changes):
    whole = BACKEND.to_json()
    return lambda fields: fields["index"].update(backend={**whole, **changes})


def without(name):
    return lambda fields: fields.pop(name)


def with_words(word):
    return lambda fields: [hit.__setitem__(1, word) for hit in fields["hits"]]


def both_of(*changes):
    return lambda fields: [change(fields) for change in changes]


BROKEN_RULES = {
    "a mask that demands quarantine": both_of(in_policy(masks=[[1 << 30, 0]]), with_words(1 << 30 | 1 << 27)),
    "a mask that demands a tombstone": both_of(
        in_policy(masks=[[1 << 31, 0]]), with_words(1 << 31 | 1 << 27)
    ),
    "a mask that forbids the version": in_policy(masks=[[0x20, 0x10000], [1, 1 << 27]]),
    "a negative mask": in_policy(masks=[[0x20, 0], [-1, 0]]),
    "a bit required and forbidden": in_policy(masks=[[0x20, 0], [1, 1]]),
    "nine masks": in_policy(masks=[[0x20, 0]] * 9),
    "a pair of three": in_policy(masks=[[0x20, 0], [1, 2, 4]]),
    "a list of reopened entities has no masks": in_policy(reopened_entities={"count": 1, "kind": "deny"}),
    "a word of 33 bits": with_words(1 << 32 | 1 << 27 | 0x21),
    "a cooling time of nothing that is written": in_policy(cooling=0),
    "no role": without("role"),
    "no purpose": without("purpose"),
    "no source": without("source"),
    "no models": without("models"),
    "no hits": without("hits"),
    "a member more": lambda fields: fields.update(colour="red"),
    "an unknown kind": lambda fields: fields.update(kind="anything"),
    "a minute in microseconds": lambda fields: fields.update(as_of=1_795_380_520_493_381),
    "a minute of 33 bits": lambda fields: fields.update(as_of=1 << 32),
    "an instant past 2**53": lambda fields: fields.update(t0=1 << 53),
    "a role in prose": lambda fields: fields.update(role="ana, who asked"),
    "an issuer of an asserted session": lambda fields: fields.update(issuer="https://login.example"),
    "an empty list that is not written": lambda fields: fields.update(intents=[]),
    "an empty list of fields that is not written": lambda fields: fields.update(where=[]),
    "an empty list of heads that is not written": lambda fields: fields.update(heads=[]),
    "heads of three numbers": lambda fields: fields.update(heads=[[1, 2, 0]]),
    "heads of five numbers": lambda fields: fields.update(heads=[[1, 2, 0, 9, 9]]),
    "heads of hit 0": lambda fields: fields.update(heads=[[0, 1, 0, 9]]),
    "heads from hit 0": lambda fields: fields.update(heads=[[1, 0, 0, 9]]),
    "heads from before the text": lambda fields: fields.update(heads=[[1, 2, -1, 9]]),
    "heads up to nothing": lambda fields: fields.update(heads=[[1, 2, 0, 0]]),
    "a backend without shards": in_backend(shards=[]),
    "a backend that is not written": lambda fields: fields["index"].update(backend=None),
    "a shard without its place": in_backend(shards=[["0"]]),
    "a shard with its rows": in_backend(shards=[["0", "here", 9]]),
    "a shard by number": in_backend(shards=[[0, "here"]]),
    "an epoch before the first": in_backend(epoch=-1),
    "a dictionary of 31 bytes": in_backend(dictionary="A" * 42),
    "a backend without a name": in_backend(name=""),
    "a backend with its rows": in_backend(rows=9),
    "heads in words": lambda fields: fields.update(heads=[["1", 2, 0, 9]]),
    "the default class of retention": lambda fields: fields.update(retain="fin7y"),
    "a similarity past a cosine": lambda fields: fields["hits"][0].__setitem__(2, 1_000_011),
    "cited twice": lambda fields: fields["hits"][0].__setitem__(3, 2),
    "arrays seventeen deep": lambda fields: fields.update(why=json.loads("[" * 17 + "]" * 17)),
    "arrays 700 deep": lambda fields: fields.update(why=json.loads("[" * 700 + "]" * 700)),
    "more bytes than a record has": lambda fields: fields.update(intents=[f"I{n:04}" for n in range(8000)]),
}


BROKEN_LAWS = {
    "a deny list with others denied beside it": (
        "query",
        in_policy(entities={"count": 2, "denied": 1, "kind": "deny"}),
    ),
    "denials that end before they began": ("denial", lambda it: it.update(t0=9, t1=1)),
    "one denial that lasted": ("denial", lambda it: it.update(count=1)),
    "no denial": ("denial", lambda it: it.update(count=0)),
    "an erasure that names one record twice": ("erasure", lambda it: it.update(records=[4, 4])),
    "an erasure out of order": ("erasure", lambda it: it.update(fields=["subject", "query"])),
    "an erasure that names fewer than it counts": ("erasure", lambda it: it.update(records=[4])),
    "an erasure of no records": ("erasure", lambda it: it.update(count=0, records=[])),
    "an erasure of nothing": ("erasure", lambda it: it.update(fields=[])),
    "an erasure of no documents": ("documents", lambda it: it.update(ids=[])),
    "an erasure of one document twice": ("documents", lambda it: it.update(ids=it["ids"][:1] * 2)),
    "an erasure of 501 documents": (
        "documents",
        lambda it: it.update(ids=[b64url(n.to_bytes(32)) for n in range(501)]),
    ),
    "an erasure of a document by its name": ("documents", lambda it: it.update(ids=["plan.md"])),
    "an erasure of documents without its basis": ("documents", lambda it: it.pop("basis")),
    "an erasure of documents for another reason": ("documents", lambda it: it.update(basis="GDPR_18")),
    "an erasure of documents from places in prose": (
        "documents",
        lambda it: it.update(places=["the tables"]),
    ),
    "an erasure of documents without what is beyond": ("documents", lambda it: it.pop("beyond")),
    "an erasure of documents that keeps an answer twice": ("documents", lambda it: it.update(kept=[3, 3])),
    "an erasure of documents that keeps answers out of order": (
        "documents",
        lambda it: it.update(kept=[5, 3]),
    ),
    "an erasure of documents that names the asker": (
        "documents",
        lambda it: it["commitments"].update(subject="A" * 43),
    ),
    "a hold on records that end first": ("hold", lambda it: it.update(first=9, last=2, scope="records")),
    "a hold on records without the last": ("hold", lambda it: it.update(first=9, last=None, scope="records")),
    "a hold on a subject that names records": (
        "hold",
        lambda it: it.update(first=2, last=9, scope="subject"),
    ),
    "a hold placed by another": ("hold", lambda it: it.update(action="placed", placed=3)),
    "a hold released from nothing": ("hold", lambda it: it.update(action="released", placed=None)),
    "a glass mended before it was broken": ("glass", lambda it: it.update(until=it["at"])),
    "values opened without a role": ("disclosure", lambda it: it.update(outcome="answer", role=None)),
    "values refused to an auditor": ("disclosure", lambda it: it.update(outcome="refuse", role="auditor")),
    "values declined": ("disclosure", lambda it: it.update(outcome="decline", role=None)),
    "a key of another length": ("key", lambda it: it.update(public="AAAA")),
    "a key of an unknown algorithm": ("key", lambda it: it.update(algorithm=2)),
    "a rotation without its end": ("key", lambda it: it.update(action="rotate", until=None, good=None)),
    "an added key with an end": ("key", lambda it: it.update(action="add", until=9, good=None)),
    "a revocation that believes nothing": (
        "key",
        lambda it: it.update(action="revoke", until=None, good=None),
    ),
    "a move from the index to itself": ("move", lambda it: it.update(before=None, after=None)),
    "a move to a place without an epoch": ("move", lambda it: it["after"].pop("epoch")),
    "memberships that are less than none": ("groups", lambda it: it.update(opened=-1)),
    "a gate beyond a cosine": ("model", lambda it: it.update(gate=1_000_001)),
    "a threshold under a bad name": ("evaluation", lambda it: it.update(thresholds={"recall_": "1"})),
    "a test passed twice": ("evaluation", lambda it: it.update(passed=2)),
    "an empty list of begins that is written": ("recovery", lambda it: it.update(begins=[])),
    "a commitment that no such record has": ("anchor", lambda it: it["commitments"].update(query="A" * 43)),
    "a label with a hidden character": ("ingest", lambda it: it.update(embed="a\u202eb")),
    "a digest of 31 bytes": ("index", lambda it: it.update(before="A" * 42)),
    "a digest in another spelling": ("policy", lambda it: it.update(table=it["table"][:-1] + "R")),
}


FALSE_HEADS = {
    "past the end of the lender's text": [[1, 2, 0, 99]],
    "of a hit that does not exist": [[3, 1, 0, 9]],
    "from a hit that does not exist": [[1, 3, 0, 9]],
    "of their own hit": [[1, 1, 0, 9]],
    "twice": [[1, 2, 0, 9], [1, 2, 0, 9]],
    "out of order": [[2, 1, 0, 9], [1, 2, 0, 9]],
    "that end before they begin": [[1, 2, 9, 9]],
}


def signed_again(fields, change, key):
    """Change a receipt's record and sign it as a log that lies would."""
    record = json.loads(fields["record"])
    change(record)
    for hit in filter(None, fields["hits"]):
        hit["proof"] = None
    fields["record"] = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    fields["proof"] = mutants.sign(fields["record"].encode(), key)
    return (json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n").encode()
