#!/usr/bin/env python3
"""Check a receipt, a proof or an exported log with nothing but this file and Python 3.9 or newer.

    python3 verify_receipt.py receipt.json --key VKEY       a receipt: record, proof, question, answer, passages
    python3 verify_receipt.py DIR --key VKEY                what `carag audit prove` or `carag audit export` wrote
    python3 verify_receipt.py PROOF --old CHECKPOINT --key VKEY     that a log extends a checkpoint you kept
    python3 verify_receipt.py CHECKPOINT --key VKEY         that the log signed it
    python3 verify_receipt.py RECEIPT --erased STATEMENT --key VKEY     and that its record erases one document

VKEY is the log's public key or a file that holds it; a log whose key was changed has several, one per line. Take them
from a source you trust, not from the giver of the files. Exit codes: 0 every check holds, 1 a check fails
(something was altered, or the log broke its own rules), 2 cannot tell (not readable, from another log, or in an unknown
format), 64 the command is invalid, 70 this program failed and says nothing about the file.

Read it before you trust it. It shares no line of code with CARAG and needs no package: Ed25519 (RFC 8032), the Merkle
tree (RFC 9162), notes, checkpoints and proofs (c2sp.org/signed-note, tlog-checkpoint, tlog-proof, tlog-witness), and
records and receipts as canonical JSON (RFC 8785), by the rules in docs/reference/receipts.md. Signatures by keys
that were not given, such as those of witnesses, are ignored; so are those of ML-DSA-44 keys, which Python cannot check.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import hmac
import io
import json
import re
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, NoReturn  # noqa: UP035 # Python 3.9 has them here

FORMAT = "carag-receipt/v1"
STATEMENT = "carag-erased/v1"
PROOF_HEADER = "c2sp.org/tlog-proof@v1\n"
MAX_BYTES = 64 << 20
MAX_RECORD_BYTES = 60_000
MAX_HASHES = 63
MAX_SIGNATURES = 100
MAX_NESTING = 16
MAX_INTEGER = (1 << 53) - 1
MAX_MINUTE = 0xFFFFFFFF
MAX_NUMBER = (1 << 63) - 1
# Records pin the words of policy version 1: control bits 27..31, of which 27 is the version.
CONTROL_BITS = 0xF8000000
VERSION_WORD = 1 << 27
NEVER_OPENED = {"authority", "conversation", "entities", "principals", "targets"}
"""Commitments whose values no receipt shows."""

Fields = dict[str, Any]


class Failed(Exception):
    """A check fails: something was altered, or the log broke its own rules."""


class CannotTell(Exception):
    """The check cannot be made."""


# -- Ed25519: RFC 8032 section 5.1, verification only

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]
"""X, Y, Z, T (section 5.1.4)."""


def point_add(p: Point, q: Point) -> Point:
    """Add two points (section 5.1.4)."""
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * p[3] * q[3] * D % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def point_decode(data: bytes) -> Point | None:
    """Decode a point (section 5.1.3); None if the bytes are not the canonical form of a point."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if len(data) != 32 or y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * SQRT_M1 % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


def point_encode(p: Point) -> bytes:
    """Encode a point (section 5.1.2)."""
    inverse = pow(p[2], P - 2, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


IDENTITY: Point = (0, 1, 1, 0)
BASE = point_decode((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")) or IDENTITY


def ed25519_verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Check a signature: encode([S]B - [k]A) must be R (section 5.1.7)."""
    key = point_decode(public)
    s = int.from_bytes(signature[32:], "little")
    if key is None or len(signature) != 64 or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    minus = (P - key[0], key[1], 1, P - key[3])
    table = (IDENTITY, BASE, minus, point_add(BASE, minus))
    total = IDENTITY
    for bit in range(252, -1, -1):  # both products in one pass
        total = point_add(total, total)
        choice = (s >> bit & 1) | (k >> bit & 1) << 1
        if choice:
            total = point_add(total, table[choice])
    return point_encode(total) == signature[:32]


# -- the Merkle tree: RFC 9162 section 2.1


def leaf_hash(entry: bytes) -> bytes:
    """Hash a record."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two subtrees."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def inclusion_holds(leaf: bytes, index: int, size: int, path: list[bytes], root: bytes) -> bool:
    """Section 2.1.3.2."""
    if not 0 <= index < size or any(len(sibling) != 32 for sibling in path):
        return False
    fn, sn, current = index, size - 1, leaf
    for sibling in path:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            current = node_hash(sibling, current)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            current = node_hash(current, sibling)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and current == root


def consistency_holds(old: int, new: int, path: list[bytes], old_root: bytes, new_root: bytes) -> bool:
    """Section 2.1.4.2."""
    if not 0 < old <= new or any(len(sibling) != 32 for sibling in path):
        return False
    if old == new:
        return not path and old_root == new_root
    path = [old_root, *path] if old & (old - 1) == 0 else path
    if not path:
        return False
    fn, sn = old - 1, new - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    from_old = from_new = path[0]
    for sibling in path[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            from_old, from_new = node_hash(sibling, from_old), node_hash(sibling, from_new)
            while not fn & 1 and fn:
                fn, sn = fn >> 1, sn >> 1
        else:
            from_new = node_hash(from_new, sibling)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and from_old == old_root and from_new == new_root


def tree_root(leaves: list[bytes]) -> bytes:
    """Section 2.1.1, over leaf hashes."""
    peaks: list[tuple[int, bytes]] = []  # (level, hash) of perfect subtrees, left to right
    for leaf in leaves:
        level, current = 0, leaf
        while peaks and peaks[-1][0] == level:
            level, current = level + 1, node_hash(peaks.pop()[1], current)
        peaks.append((level, current))
    if not peaks:
        return hashlib.sha256(b"").digest()
    root = peaks.pop()[1]
    while peaks:
        root = node_hash(peaks.pop()[1], root)
    return root


# -- notes, checkpoints, proofs


class Key(NamedTuple):
    """A named Ed25519 public key; or a signature line of a note, which claims to be by that key."""

    name: str
    id: bytes
    data: bytes


class Keys(NamedTuple):
    """The keys of one log."""

    name: str
    keys: tuple[Key, ...]


class Checkpoint(NamedTuple):
    """The content of a signed checkpoint."""

    origin: str
    size: int
    root: bytes


def parse_vkeys(text: str) -> Keys:
    """Read the vkeys of one log, one per line. ML-DSA-44 keys are ignored; at least one key must be Ed25519."""
    vkeys = [parse_vkey(line) for line in text.split("\n") if line.strip()]
    names, keys = {name for name, _ in vkeys}, [key for _, key in vkeys if key is not None]
    if len(names) > 1:
        raise CannotTell(f"these keys belong to different logs: {', '.join(sorted(names))}")
    if not keys:
        raise CannotTell("want an Ed25519 vkey: name+keyid+base64")
    if len({key.id for key in keys}) < len(keys):
        raise CannotTell(f"a key of {keys[0].name} is listed twice")
    return Keys(keys[0].name, tuple(keys))


def parse_vkey(text: str) -> tuple[str, Key | None]:
    """Read ``name+keyid+base64(type || public key)`` (c2sp.org/signed-note): type 1 is Ed25519, 6 is ML-DSA-44."""
    name, _, rest = text.strip().partition("+")
    key_id, _, encoded = rest.partition("+")
    data = unbase64(encoded, "the public key")
    ed25519 = len(data) == 33 and data[0] == 1 and point_decode(data[1:]) is not None
    if not (is_name(name) and (ed25519 or (len(data) == 1313 and data[0] == 6))):
        raise CannotTell("want an Ed25519 vkey: name+keyid+base64")
    if hashlib.sha256(name.encode() + b"\n" + data).hexdigest()[:8] != key_id:
        raise CannotTell(f"the vkey of {name} does not match its own key id; copy it again")
    return name, Key(name, bytes.fromhex(key_id), data[1:]) if ed25519 else None


def is_name(name: str) -> bool:
    """Tell whether a key can have this name."""
    return 0 < len(name) <= 200 and name.isprintable() and not any(c.isspace() or c == "+" for c in name)


def parse_signatures(lines: str) -> list[Key]:
    """Read the lines ``— name base64(key id || signature)`` under a note, one for each key."""
    signatures: list[Key] = []
    for line in lines.split("\n")[:-1]:
        dash, name, encoded = (*line.split(" "), "", "")[:3]
        data = unbase64(encoded, "the signature")
        if f"\u2014 {name} {encoded}" != line or not is_name(name) or len(data) < 5 or dash != "\u2014":
            raise CannotTell(f"want signature lines `\u2014 name base64`, got {line!r}")
        signatures.append(Key(name, data[:4], data[4:]))
    if not (lines.endswith("\n") and len(signatures) <= MAX_SIGNATURES):
        raise CannotTell(f"want one to {MAX_SIGNATURES} signature lines, each ending in a newline")
    if len({(one.name, one.id) for one in signatures}) < len(signatures):
        raise CannotTell("the note is signed twice by the same key")
    return signatures


def open_checkpoint(text: str, keys: Keys) -> Checkpoint:
    """Check that a given key signed a note, and read it as a checkpoint (without extension lines).

    As c2sp.org/signed-note asks, lines of unknown keys are ignored, and a false line of a given key makes it invalid.
    """
    body, blank, lines = text.rpartition("\n\n")
    if not (body and blank) or any(c < " " and c != "\n" for c in text):
        raise CannotTell("a checkpoint is a text, a blank line and signature lines")
    signatures = parse_signatures(lines)
    known = {(key.name, key.id): key for key in keys.keys}
    ours = [one for one in signatures if (one.name, one.id) in known]
    if not ours:
        signers = ", ".join(f"{one.name}+{one.id.hex()}" for one in signatures)
        given = ", ".join(f"{key.name}+{key.id.hex()}" for key in keys.keys)
        raise CannotTell(
            f"the checkpoint is signed by {signers}, not by {given}; give all keys if it was rotated"
        )
    for one in ours:
        if not ed25519_verify(known[one.name, one.id].data, (body + "\n").encode(), one.data):
            raise Failed("the checkpoint's signature is not valid: it or its text was altered")
    origin, *said = body.split("\n")
    if len(said) != 2 or len(unbase64(said[1], "the root hash")) != 32 or not is_name(origin):
        raise CannotTell("the signed note is not a checkpoint: want origin, size and root hash, one per line")
    checkpoint = Checkpoint(origin, number(said[0], "the tree size"), unbase64(said[1], "the root hash"))
    if origin != keys.name:
        raise Failed(f"{keys.name} signed a checkpoint of {origin}")
    return checkpoint


def parse_proof(text: str, word: str) -> tuple[int, list[bytes], str]:
    """Read ``<word> N``, hashes, a blank line and a checkpoint; return N, the hashes and the checkpoint's text."""
    head, blank, note = text.partition("\n\n")
    first, *hashes = head.split("\n")
    if not (blank and first.startswith(word + " ")):
        raise CannotTell(f"a proof has a line `{word} N`, hashes, a blank line and a checkpoint")
    if len(hashes) > MAX_HASHES:
        raise CannotTell(f"a proof has at most {MAX_HASHES} hashes, got {len(hashes)}")
    return number(first[len(word) + 1 :], word), [unbase64(line, "a hash") for line in hashes], note


def check_inclusion(record: bytes, proof: str, keys: Keys) -> tuple[Checkpoint, int]:
    """Check that these bytes are in the signed log; return its checkpoint and their index."""
    if not proof.startswith(PROOF_HEADER):
        raise CannotTell(f"an inclusion proof starts with {PROOF_HEADER.strip()}")
    index, path, note = parse_proof(proof[len(PROOF_HEADER) :], "index")
    checkpoint = open_checkpoint(note, keys)
    if not inclusion_holds(leaf_hash(record), index, checkpoint.size, path, checkpoint.root):
        raise Failed(
            f"the record is not entry {index} of the signed tree of {checkpoint.size}: it or its proof was altered"
        )
    return checkpoint, index


def check_place(fields: Fields, checkpoint: Checkpoint, index: int) -> str:
    """Check that the record itself states this log and index."""
    if (fields.get("log"), fields.get("seq")) != (checkpoint.origin, index):
        said = f"entry {fields.get('seq')} of {fields.get('log')}"
        raise Failed(f"entry {index} of {checkpoint.origin} says it is {said}")
    return f"record {index} of {checkpoint.origin} is as the log signed it"


def check_consistency(old: str, proof: str, keys: Keys) -> str:
    """Check that the log of a proof's checkpoint extends the one of an older checkpoint."""
    before = open_checkpoint(old, keys)
    start, path, note = parse_proof(proof, "old")
    after = open_checkpoint(note, keys)
    if start != before.size:
        raise Failed(f"the proof starts from {start} records, but the checkpoint kept covers {before.size}")
    if not consistency_holds(before.size, after.size, path, before.root, after.root):
        raise Failed(f"the log of {after.size} records does not extend the {before.size} you kept")
    return f"the log of {after.size} records extends the {before.size} you kept"


# -- the members of records and receipts: docs/reference/receipts.md has the same table

Rule = Callable[[Any], bool]


def within(low: int, high: int) -> Rule:
    """Accept integers in a range."""
    return lambda value: isinstance(value, int) and low <= value <= high


def spelt(pattern: str) -> Rule:
    """Accept texts of a pattern."""
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def encoded(size: int) -> Rule:
    """Accept this many bytes in canonical base64url without padding."""
    return lambda value: (
        isinstance(value, str) and base64url(raw := unbase64url(value)) == value and len(raw) == size
    )


VALUES: dict[str, Rule] = {
    "any": lambda _: True,
    "text": lambda value: isinstance(value, str),
    "label": lambda value: isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable(),
    "code": spelt("[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,63}"),
    "integer": within(-MAX_INTEGER, MAX_INTEGER),
    "count": within(0, MAX_INTEGER),
    "positive": within(1, MAX_INTEGER),
    "minute": within(0, MAX_MINUTE),
    "bits": within(0, (1 << 27) - 1),
    "word": within(0, (1 << 32) - 1),
    "gate": within(-1_000_000, 1_000_000),
    "similarity": within(-1_000_010, 1_000_010),
    "flag": within(0, 1),
    "bytes16": encoded(16),
    "bytes20": encoded(20),
    "bytes32": encoded(32),
    "pair": lambda value: fits(value, "bits,bits") and not value[0] & value[1],
    "end": lambda value: spelt("0|[1-9][0-9]{0,9}")(value) and int(value) <= MAX_MINUTE,
    "measures": lambda value: (
        isinstance(value, dict)
        and all(map(spelt("[a-z][a-z0-9_]{0,63}"), value))
        and fits([*value.values()], "[integer]")
    ),
}
TABLE = """
every        commitments:any id:bytes16 kind:text log:label retain?:ai6m|fin5y|fin6y seq:count tc:count v:any
begin        as_of:minute commitments:{query,subject} models:models policy:applied purpose:code? role:code?
             source:asserted|verified t0:count
asked        as_of:minute audience?:label begun?:count
             commitments:{answer,authority,conversation,entities,principals,query,reading,subject,where} day?:code
             glass?:count heads?:[positive,positive,count,positive]+ hits:[bytes20,word,similarity,flag] index:state?
             intents?:[code]+ issuer?:label models:models outcome:answer|decline|refuse|error policy:applied
             purpose:code? role:code? source:asserted|verified t0:count t1:count where?:[code]+ why:code
ingest       chunks:count commitments:{subject} documents:count embed:label? quarantined:count rows:count
             snapshot:bytes32 t0:count t1:count table:bytes32 why:code
denial       audience:label? commitments:{} count:positive issuer:label? t0:count t1:count why:code
policy       at:count before:bytes32? commitments:{subject} table:bytes32 why:code
model        at:count before:models? before_gate:gate? commitments:{subject} gate:gate models:models why:code
index        at:count before:bytes32 commitments:{subject} rows:count snapshot:bytes32 why:code
move         after:rows_in? at:count before:rows_in? commitments:{subject} root:bytes32 rows:count why:code
groups       added:count at:count closed:count commitments:{statement,subject} opened:count why:code
evaluation   commitments:{subject} passed:flag result:bytes32 snapshot:bytes32 suite:code suite_hash:bytes32 t0:count
             t1:count table:bytes32 thresholds:measures
recovery     begins?:[count]+ commitments:{} why:code
erasure      basis:GDPR_17_1|GDPR_5_1_E|GDPR_17_1_D|GDPR_17_1_E commitments:{actor,approver,targets} count:positive
             fields:[code]+ records:[count]
documents    after:bytes32 answers:count basis:GDPR_17_1|GDPR_5_1_E|GDPR_17_1_D|GDPR_17_1_E before:bytes32 beyond:[code]
             commitments:{actor,approver,targets} ids:[bytes32]+ kept:[count] passages:count places:[code]
hold         action:placed|released commitments:{actor,approver,subject,targets} first:count? last:count? matter:code
             placed:count? scope:all|documents|records|subject
glass        at:count commitments:{approver,reason,subject} purpose:code role:code source:asserted|verified until:count
disclosure   commitments:{actor,targets} fields:[code] outcome:answer|refuse record:count?
             role:auditor|privacy_officer? why:code
anchor       anchor:code commitments:{} evidence:bytes32 seen:count size:count
key          action:rotate|add|revoke algorithm:count commitments:{subject} good:count? public:text until:count?
             why:code
applied      cooling?:positive entities?:listed masks:[pair] reopened?:[pair]+ reopened_entities?:listed table:bytes32
listed       count:count denied?:positive kind:allow|deny
models       embed:label? generate:label? prompt:label? rank?:label read?:label rerank?:label
state        admissible:count backend?:backend known?:count plan:code snapshot:bytes32
backend      collection:label dictionary:bytes32 epoch:count name:label shards:[label,label]+
rows_in      collection:label epoch:count name:label
opening      salt:bytes32 value:text
passage      chunk:text proof:any text:text
proof        from:minute path:text sides:text until:any
ending       salt:bytes32 value:end
"""
"""Members of records by kind, then of the objects in them and in receipts. ``name?`` may be missing, ``rule?`` be null;
``[rule]`` is an array, with ``+`` not empty; ``a|b`` is one of these words; ``{a,b}`` holds bytes32 by these names."""
OBJECTS = {
    line.split()[0]: " ".join(line.split()[1:]) for line in TABLE.replace("\n  ", " ").split("\n") if line
}
ASKED = ("query", "retrieve", "explain")
KINDS = (*ASKED, "begin", *list(OBJECTS)[list(OBJECTS).index("ingest") : list(OBJECTS).index("applied")])
LAWS: dict[str, Rule] = {
    "asked": lambda it: it["source"] == "verified" or not {"audience", "issuer"} & it.keys(),
    "applied": lambda it: (
        max(len(it["masks"]), len(it.get("reopened", ()))) <= 8
        and ("reopened" in it or "reopened_entities" not in it)
    ),
    "listed": lambda it: it["kind"] == "allow" or "denied" not in it,
    "move": lambda it: it["before"] is not None or it["after"] is not None,
    "denial": lambda it: it["t0"] == it["t1"] or (it["t0"] < it["t1"] and it["count"] > 1),
    "erasure": lambda it: (
        it["fields"] == sorted(set(it["fields"]))
        and it["records"] == sorted(set(it["records"]))
        and len(it["records"]) in (0, it["count"])
    ),
    "documents": lambda it: (
        len(it["ids"]) == len(set(it["ids"])) <= 500 and it["kept"] == sorted(set(it["kept"]))
    ),
    "hold": lambda it: (
        (it["action"] == "released") == (it["placed"] is not None)
        and (it["first"] is None) == (it["last"] is None) == (it["scope"] != "records")
        and (it["first"] or 0) <= (it["last"] or 0)
    ),
    "glass": lambda it: it["at"] < it["until"],
    "disclosure": lambda it: (it["outcome"] == "answer") == (it["role"] is not None),
    "key": lambda it: (
        encoded({1: 32, 6: 1312}.get(it["algorithm"], -1))(it["public"])
        and (it["action"] == "rotate") == (it["until"] is not None)
        and (it["action"] == "revoke") == (it["good"] is not None)
    ),
    "proof": lambda it: (
        set(it["sides"]) <= {"L", "R"}
        and encoded(32 * len(it["sides"]))(it["path"])
        and (fits(it["until"], "bytes32") or fits(it["until"], "ending"))
    ),
}
"""How the members of one object must fit together."""


def fits(value: Any, rule: str) -> bool:
    """Tell whether a value fits a rule of the table."""
    if rule.endswith("?"):
        return value is None or fits(value, rule[:-1])
    if rule.startswith("["):
        item, _, plus = rule[1:].partition("]")
        return isinstance(value, list) and len(value) >= len(plus) and all(fits(one, item) for one in value)
    if rule.startswith("{"):
        names = [name for name in rule[1:-1].split(",") if name]
        return isinstance(value, dict) and not misfit(value, " ".join(f"{name}?:bytes32" for name in names))
    if "," in rule:
        parts = rule.split(",")
        return isinstance(value, list) and len(value) == len(parts) and all(map(fits, value, parts))
    if rule in VALUES:
        return VALUES[rule](value)
    if rule in OBJECTS:
        return (
            isinstance(value, dict)
            and not misfit(value, OBJECTS[rule])
            and LAWS.get(rule, VALUES["any"])(value)
        )
    return value in rule.split("|")


def misfit(value: Fields, members: str) -> str:
    """Name a member that is missing, unknown or does not fit its rule; otherwise an empty text."""
    rules = dict(member.split(":", 1) for member in members.split())
    for name in sorted({name.rstrip("?") for name in rules} | value.keys()):
        rule = rules.get(name) or rules.get(f"{name}?")
        if rule is None or not (fits(value[name], rule) if name in value else f"{name}?" in rules):
            return name
    return ""


def record_fields(body: bytes, what: str) -> Fields:
    """Read a record whose place in its log is valid; other members are not checked."""
    fields = canonical(body, what)
    placed = {"id": "bytes16", "log": "label", "seq": "count", "tc": "count"}
    if not (isinstance(fields, dict) and all(fits(fields.get(name), rule) for name, rule in placed.items())):
        raise CannotTell(f"{what} lacks a valid id, log, seq or tc")
    return fields


def read_record(body: bytes) -> Fields:
    """Read a record that keeps every rule of its kind."""
    fields = record_fields(body, "the record")
    version, kind = fields.get("v"), fields.get("kind")
    if version != 1 or kind not in KINDS or len(body) > MAX_RECORD_BYTES:
        raise CannotTell(f"the record has version {version!r} and kind {kind!r}, which are unknown here")
    shape = "asked" if kind in ASKED else kind
    wrong = misfit(fields, f"{OBJECTS['every']} {OBJECTS[shape]}")
    if wrong or not LAWS.get(shape, VALUES["any"])(fields):
        raise CannotTell(f"the record is not valid for kind {kind}; check its {wrong or 'members'}")
    return fields


# -- receipts


class Hit(NamedTuple):
    """A passage as a record names it."""

    digest: str
    """The first 20 bytes of a SHA-256 over chunk id and text."""
    word: int
    cited: int

    @property
    def name(self) -> str:
        """The hit's name in messages."""
        return f"hit {self.digest}"


def hits_of(fields: Fields) -> list[Hit]:
    """Return the record's hits."""
    return [Hit(digest, word, cited) for digest, word, _, cited in fields.get("hits", ())]


def check_commitments(fields: Fields, receipt: Fields) -> None:
    """Check each opened value against its commitment."""
    for name, opening in receipt["openings"].items():
        if not (
            fits(opening, "opening")
            and base64url(commitment(name, opening)) == fields["commitments"].get(name)
        ):
            raise Failed(f"the {name} shown is not the one committed to")


def commitment(name: str, opening: Fields) -> bytes:
    r"""Commit: HMAC-SHA256(salt, "carag/commit/v1\0" name "\0" value)."""
    message = b"carag/commit/v1\0" + name.encode() + b"\0" + opening["value"].encode()
    return hmac.new(unbase64url(opening["salt"]), message, hashlib.sha256).digest()


def check_passages(fields: Fields, receipt: Fields) -> None:
    """Check that the passages shown are those that the record names, in its order."""
    named, shown = hits_of(fields), receipt["hits"]
    if len(named) != len(shown):
        raise Failed(f"the record names {len(named)} passages, but the receipt shows {len(shown)}")
    for place, hit in enumerate(named, start=1):
        passage = shown[place - 1]
        if passage is None:
            continue
        if not fits(passage, "passage"):
            raise Failed(f"passage {place} is not the one of {hit.name}")
        chunk, text = passage["chunk"], hashlib.sha256(passage["text"].encode()).digest()
        digest = hashlib.sha256(b"carag/hit/v1\0" + chunk.encode() + b"\0" + text).digest()[:20]
        if base64url(digest) != hit.digest:
            raise Failed(f"passage {place} is not the one of {hit.name}")
    for place, lender, _, end in fields.get("heads", ()):
        [passage] = shown[lender - 1 : lender] or [{"text": ""}]
        if passage is not None and end > len(passage["text"]):
            raise Failed(f"passage {lender} does not hold the heads of passage {place}")


def check_record(fields: Fields) -> None:
    """Check that the record does not contradict itself, and that one of its masks admits each hit."""
    hits, index, said = hits_of(fields), fields.get("index"), fields["commitments"]
    kind, outcome, policy = fields["kind"], fields.get("outcome"), fields.get("policy", {})
    asked, answers = "hits" in fields, outcome == "answer" and kind != "retrieve"
    if not asked and kind != "begin":
        return
    rows, lists = index["admissible"] if index else 0, {"entities", "reopened_entities"} & policy.keys()
    intents, where = fields.get("intents", ()), fields.get("where", [])
    heads = fields.get("heads", [])
    headed = [place for place, *_ in heads]
    contradictions = {
        "a refused request has passages or searched an index": outcome == "refuse" and (hits or index),
        "it cites passages but is not an answer": outcome != "answer" and any(one.cited for one in hits),
        "a chunk is listed twice": len({one.digest for one in hits}) < len(hits),
        "an intent is listed twice": len(set(intents)) < len(intents),
        "the fields of where are out of order or repeated": where != sorted(set(where)),
        "its heads are out of order or twice": headed != sorted(set(headed)),
        "its heads are its own, or of no passage": any(max(a, b) > len(hits) or a == b for a, b, *_ in heads),
        "its heads end before they begin": any(start >= end for *_, start, end in heads),
        "it has more passages than the index had admissible rows": kind != "explain" and len(hits) > rows,
        "its begin is not an earlier record": fields.get("begun", -1) >= fields["seq"],
        "its cell was not opened by an earlier record": fields.get("glass", -1) >= fields["seq"],
        "it has no passage for its answer": answers and kind == "query" and not hits,
        "it commits to no answer": answers and kind == "query" and "answer" not in said,
        "it commits to an answer that was not given": "answer" in said and not answers,
        "it commits to no question": "query" not in said,
        "it commits to lists that it lacks, or the reverse": asked and ("entities" in said) != bool(lists),
        "it commits to a narrowing it lacks, or the reverse": asked and ("where" in said) != bool(where),
    }
    for contradiction, is_so in contradictions.items():
        if is_so:
            raise Failed(f"the record contradicts itself: {contradiction}")
    pairs = [*policy["masks"], *policy.get("reopened", ())]
    for one in hits:
        if not any(one.word & (ones | zeros | CONTROL_BITS) == ones | VERSION_WORD for ones, zeros in pairs):
            raise Failed(f"{one.name} carries word {one.word:#010x}, which no recorded mask admits")


def check_state(fields: Fields, receipt: Fields) -> None:
    """Check that each passage with a proof was in the record's index state, with its text and word, at that time."""
    for place, hit in enumerate(hits_of(fields), start=1):
        passage = receipt["hits"][place - 1]
        proof = passage and passage["proof"]
        if proof is None:
            continue
        index, wrong = fields.get("index"), f"the proof of passage {place}"
        if index is None:
            raise Failed(f"{wrong} cannot be checked: the record names no index state")
        if not fits(proof, "proof"):
            raise Failed(f"{wrong} is invalid: want from, path, sides and until, and nothing else")
        if base64url(state_root(proof, passage, hit.word)) != index["snapshot"]:
            raise Failed(f"{wrong} does not lead to the index state of the record")
        end = MAX_MINUTE + 1 if isinstance(proof["until"], str) else int(proof["until"]["value"])
        if not proof["from"] <= fields["as_of"] < end:
            raise Failed(f"{wrong} is for another time than the question's")


def state_root(proof: Fields, passage: Fields, word: int) -> bytes:
    """Fold a state proof up, from the label to the root it leads to.

    The leaf is {"c": chunk, "f": from, "p": word, "t": SHA-256 of the text, "u": commitment to the minute until which
    the word holds}. ``sides`` has the side of each hash in ``path``.
    """
    text, until = base64url(hashlib.sha256(passage["text"].encode()).digest()), proof["until"]
    seal = until if isinstance(until, str) else base64url(commitment("until", until))
    entry = {"c": passage["chunk"], "f": proof["from"], "p": word, "t": text, "u": seal}
    current = leaf_hash(json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
    hashes = unbase64url(proof["path"])
    for step, side in enumerate(proof["sides"]):
        sibling = hashes[32 * step : 32 * step + 32]
        current = node_hash(sibling, current) if side == "L" else node_hash(current, sibling)
    return current


def check_receipt(data: bytes, keys: Keys) -> str:
    """Check a receipt file."""
    if len(data) > MAX_BYTES or not data.endswith(b"\n"):
        raise CannotTell(f"a receipt ends in a newline and has at most {MAX_BYTES} bytes")
    receipt = canonical(data[:-1], "the receipt")
    if not isinstance(receipt, dict) or receipt.get("format") != FORMAT:
        raise CannotTell(f"not a receipt of format {FORMAT}")
    kinds = {"format": str, "hits": list, "openings": dict, "proof": str, "record": str}
    if receipt.keys() != kinds.keys() or not all(isinstance(receipt[k], kind) for k, kind in kinds.items()):
        raise CannotTell("want a record, a proof, openings and hits, and nothing else")
    body = receipt["record"].encode()
    checkpoint, index = check_inclusion(body, receipt["proof"], keys)
    fields = read_record(body)
    said = check_place(fields, checkpoint, index)
    check_commitments(fields, receipt)
    check_passages(fields, receipt)
    check_record(fields)
    check_state(fields, receipt)
    return "\n".join([f"{said}, and so is all that this receipt shows", *remarks(fields, receipt)])


def check_erased(data: bytes, statement: bytes, keys: Keys) -> str:
    """Check a receipt file, and that its record erases the document that a statement names."""
    said = check_receipt(data, keys)
    fields = json.loads(json.loads(data)["record"])
    told = canonical(statement[:-1], "the statement") if statement.endswith(b"\n") else None
    rules = f"format:{STATEMENT} id:label record:count salt:bytes16"
    if not isinstance(told, dict) or misfit(told, rules):
        raise CannotTell("a statement of an erasure has format, id, record and salt, and nothing else")
    if told["record"] != fields["seq"]:
        about = (
            f"the statement is about record {told['record']}, and the receipt about record {fields['seq']}"
        )
        raise CannotTell(f"{about}; give the receipt of record {told['record']}")
    salted = hashlib.sha256(unbase64url(told["salt"]) + told["id"].encode()).digest()
    if base64url(salted) not in fields.get("ids", ()):
        raise Failed(f"record {fields['seq']} does not erase document {told['id']}")
    return f"{said}\nit erases document {told['id']}"


def remarks(fields: Fields, receipt: Fields) -> Iterator[str]:
    """Report what is proved about the index state, and what is withheld."""
    closed = sorted(fields["commitments"].keys() - receipt["openings"].keys())
    shown = [passage for passage in receipt["hits"] if passage is not None]
    unproved = [visible(passage["chunk"]) for passage in shown if passage["proof"] is None]
    withheld = [name for name in closed if name not in NEVER_OPENED]
    for place, passage in enumerate(receipt["hits"], start=1):
        if passage is None:
            withheld.append(f"passage {place}")
        elif passage["proof"] and isinstance(passage["proof"]["until"], str):
            withheld.append(f"until of passage {place}")
    if len(unproved) < len(shown):
        yield "passages stood in its index state with these texts and words"
    if unproved:
        yield f"without a proof that they stood in the index state: {', '.join(unproved)}"
    if withheld:
        yield f"withheld from this receipt: {', '.join(withheld)}"
    if NEVER_OPENED & set(closed):
        yield f"disclosed by no receipt: {', '.join(sorted(NEVER_OPENED & set(closed)))}"


# -- directories


def check_proof_directory(path: Path, keys: Keys) -> str:
    """Check what `carag audit prove` wrote."""
    proof, body = text_of(read(path / "proof.tlog-proof"), "the proof"), read(path / "record.json")
    checkpoint, index = check_inclusion(body, proof, keys)
    return check_place(record_fields(body, "the record"), checkpoint, index)


def check_export(path: Path, keys: Keys) -> str:
    """Check what `carag audit export` wrote: every record, from the first to the last."""
    checkpoint = open_checkpoint(text_of(read(path / "checkpoint"), "the checkpoint"), keys)
    leaves: list[bytes] = []
    ids: set[str] = set()
    before = 0
    with (path / "records.jsonl").open("rb") as lines:
        for line in iter(lambda: lines.readline(MAX_RECORD_BYTES + 1), b""):
            seq = len(leaves)
            fields = record_fields(line.rstrip(b"\n"), f"record {seq}")
            if (fields["log"], fields["seq"]) != (keys.name, seq) or not line.endswith(b"\n"):
                raise Failed(f"line {seq + 1} is not record {seq} of {keys.name}")
            if fields["id"] in ids or fields["tc"] < before:
                raise Failed(f"record {seq} repeats an earlier id, or has a time before the last one")
            ids.add(fields["id"])
            before = fields["tc"]
            leaves.append(leaf_hash(line[:-1]))
    if (len(leaves), tree_root(leaves)) != (checkpoint.size, checkpoint.root):
        raise Failed(f"these {len(leaves)} records are not the {checkpoint.size} that the log signed")
    return f"{len(leaves)} records of {keys.name} are as the log signed them"


# -- canonical forms


def canonical(data: bytes, what: str) -> Any:
    """Read canonical JSON, and refuse what does not encode to the same bytes."""
    try:
        value = json.loads(
            text_of(data, what), parse_float=integer, parse_constant=integer, parse_int=integer
        )
        again = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        plain = again == data and is_plain(value, 0)
    except (ValueError, RecursionError) as error:
        raise CannotTell(f"{what} is not JSON as in records: {error}") from error
    if not plain:
        raise CannotTell(f"{what} is not canonical JSON")
    return value


def integer(text: str) -> int:
    """Read an integer that every JSON reader reads exactly (RFC 8785 section 3.2.2.3); refuse other numbers."""
    if not re.fullmatch("-?[0-9]{1,16}", text) or abs(int(text)) > MAX_INTEGER:
        raise ValueError("numbers must be integers within +-(2**53 - 1)")
    return int(text)


def is_plain(value: Any, depth: int) -> bool:
    """Tell whether keys are ASCII snake_case, the nesting is not too deep, and there are no booleans."""
    if not isinstance(value, (dict, list)):
        return not isinstance(value, bool)
    if depth == MAX_NESTING:
        return False
    keys = value if isinstance(value, dict) else ()
    inside = value.values() if isinstance(value, dict) else value
    return all(re.fullmatch("(?=.*[a-z])[a-z_][a-z0-9_]*", key) for key in keys) and all(
        is_plain(item, depth + 1) for item in inside
    )


def number(text: str, what: str) -> int:
    """Read a plain decimal number below 2**63."""
    if not re.fullmatch("0|[1-9][0-9]{0,18}", text) or int(text) > MAX_NUMBER:
        raise CannotTell(f"{what} is {text!r}; want a plain number below 2**63")
    return int(text)


def unbase64(text: str, what: str) -> bytes:
    """Read canonical standard base64."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (ValueError, binascii.Error) as error:
        raise CannotTell(f"{what} is not base64: {text!r}") from error
    if base64.b64encode(data).decode() != text:
        raise CannotTell(f"{what} is not canonical base64: {text!r}")
    return data


def base64url(data: bytes) -> str:
    """Write base64url without padding, as records do."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unbase64url(text: str) -> bytes:
    """Read base64url without padding; :func:`encoded` checks that it is canonical."""
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:  # binascii.Error is one
        return b""


def text_of(data: bytes, what: str) -> str:
    """Read UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CannotTell(f"{what} is not UTF-8: {error}") from error


def read(path: Path) -> bytes:
    """Read a file of at most 64 MB."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise CannotTell(f"cannot read {path}: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise CannotTell(f"{path} has more than {MAX_BYTES} bytes")
    return data


def visible(text: str) -> str:
    """Escape characters that a reader would not see: control and format characters move cursors and reverse lines."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


# -- the command


def find_keys(given: str | None, path: Path) -> tuple[Keys, str]:
    """Take the given keys, or else those in the directory; return also a note about the latter."""
    if given is not None:
        try:
            is_file = Path(given).is_file()
        except (OSError, ValueError):  # too long for a name, as several vkeys are, or with a NUL
            is_file = False
        return parse_vkeys(text_of(read(Path(given)), "the vkey") if is_file else given), ""
    if not (path / "vkey").is_file():
        raise CannotTell("give the log's public key with --key")
    note = "note: the key was taken from the directory, so its maker chose it; compare it with a trusted copy"
    return parse_vkeys(text_of(read(path / "vkey"), "the vkey")), note


def judge(path: Path, keys: Keys, old: str | None, erased: str | None) -> str:
    """Find out what a path holds, and check it."""
    if erased is not None:
        return check_erased(read(path), read(Path(erased)), keys)
    if path.is_dir():
        return (check_export if (path / "records.jsonl").exists() else check_proof_directory)(path, keys)
    data = read(path)
    if old is not None:
        return check_consistency(text_of(read(Path(old)), "the checkpoint"), text_of(data, "the proof"), keys)
    if data.startswith(b"{"):
        return check_receipt(data, keys)
    checkpoint = open_checkpoint(text_of(data, "the checkpoint"), keys)
    return f"{keys.name} signed a checkpoint of {checkpoint.size} records"


class Parser(argparse.ArgumentParser):
    """A parser whose errors have their own exit code."""

    def error(self, message: str) -> NoReturn:
        """Print how to use the command."""
        self.exit(64, f"{self.format_usage()}{self.prog}: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = Parser(description="Check a receipt, a proof or an exported log.")
    parser.add_argument(
        "path", help="receipt, checkpoint, consistency proof, or directory of prove or export"
    )
    parser.add_argument("--key", help="the log's vkey, or a file that holds its vkeys, one per line")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--old", help="a checkpoint you kept, for a consistency proof")
    one.add_argument("--erased", help="a statement, for the receipt of an erasure of documents")
    given = parser.parse_args(arguments)
    code, note = 0, ""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a missing character is not a failed check
    try:
        keys, note = find_keys(given.key, Path(given.path))
        said = f"verified: {judge(Path(given.path), keys, given.old, given.erased)}"
    except Failed as failure:
        code, said = 1, f"FAILED: {failure}"
    except (CannotTell, OSError) as doubt:
        code, said = 2, f"cannot tell: {doubt}"
    except Exception as error:  # noqa: BLE001 # no error may end in Python's exit code 1
        code, said = 70, f"this program failed: {type(error).__name__}; this says nothing about the file"
    said = "\n".join(map(visible, said.split("\n"))) + (f"\n{note}" if note and not code else "")
    try:
        print(said, flush=True)
    except OSError:  # a closed pipe
        code = 70
    return code


if __name__ == "__main__":
    sys.exit(main())
