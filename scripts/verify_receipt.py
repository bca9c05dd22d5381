#!/usr/bin/env python3
"""Check a receipt, a proof or an exported log with nothing but this file and Python 3.9 or newer.

    python3 verify_receipt.py receipt.json --key VKEY       a receipt: record, proof, question, answer, passages
    python3 verify_receipt.py DIR --key VKEY                what `carag audit prove` or `carag audit export` wrote
    python3 verify_receipt.py PROOF --old CHECKPOINT --key VKEY     that a log extends a checkpoint you kept
    python3 verify_receipt.py CHECKPOINT --key VKEY         that the log signed it

VKEY is the log's public key or a file that holds it. Take it from a source you trust, not from whoever gave you
the files. Exit codes: 0 every check holds, 1 a check fails (something was altered, or the log broke its own rules),
2 cannot tell (not readable, of another log, or of a format unknown here).

Read it before you trust it. It shares no line of code with CARAG and needs no package: Ed25519 (RFC 8032), the Merkle
tree (RFC 9162), notes, checkpoints and proofs (c2sp.org/signed-note, tlog-checkpoint, tlog-proof, tlog-witness), and
records as canonical JSON (RFC 8785).
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import hmac
import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

RECEIPT_FORMAT = "carag-receipt/v1"
RECEIPT_KEYS = {"format", "hits", "openings", "proof", "record"}
PROOF_HEADER = "c2sp.org/tlog-proof@v1\n"
MAX_BYTES = 64 << 20
MAX_HASHES = 63
MAX_NUMBER = (1 << 63) - 1
# Record version 1 pins the words of policy version 1: control bits 27..31, of which 27 is the version.
CONTROL_BITS = 0xF8000000
VERSION_WORD = 1 << 27


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
    """Decode a point (section 5.1.3); None if the bytes are no point in its one spelling."""
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
    if not 0 <= index < size:
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
    if not 0 < old <= new:
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
    """A named Ed25519 public key."""

    name: str
    id: bytes
    public: bytes


class Checkpoint(NamedTuple):
    """What a signed checkpoint says."""

    origin: str
    size: int
    root: bytes


def parse_vkey(text: str) -> Key:
    """Read ``name+keyid+base64(0x01 || public key)`` (c2sp.org/signed-note)."""
    name, _, rest = text.strip().partition("+")
    key_id, _, encoded = rest.partition("+")
    data = unbase64(encoded, "the public key")
    if len(data) != 33 or data[0] != 1 or not name or point_decode(data[1:]) is None:
        raise CannotTell("want an Ed25519 vkey: name+keyid+base64")
    if hashlib.sha256(name.encode() + b"\n" + data).hexdigest()[:8] != key_id:
        raise CannotTell(f"the vkey of {name} does not match its own key id; copy it again")
    return Key(name, bytes.fromhex(key_id), data[1:])


def open_checkpoint(text: str, key: Key) -> Checkpoint:
    """Check that this key alone signed a note, and read it as a checkpoint (without extension lines)."""
    body, blank, lines = text.rpartition("\n\n")
    match = re.fullmatch("— ([^ \n]+) ([A-Za-z0-9+/=]+)\n", lines)
    if not (body and blank):
        raise CannotTell("a checkpoint is a text, a blank line and a signature line")
    if match is None:
        raise CannotTell("want one signature line, by the given key alone, as `— name base64`")
    data = unbase64(match.group(2), "the signature")
    if (match.group(1), data[:4]) != (key.name, key.id):
        signer = f"{match.group(1)}+{data[:4].hex()}"
        raise CannotTell(
            f"the checkpoint is signed by {signer}, not by {key.name}+{key.id.hex()}; give that key"
        )
    if not ed25519_verify(key.public, (body + "\n").encode(), data[4:]):
        raise Failed("the checkpoint's signature is not valid: it or its text was altered")
    origin, *said = body.split("\n")
    if len(said) != 2:
        raise CannotTell("the signed note is no checkpoint: it has not three lines")
    if origin != key.name:
        raise Failed(f"{key.name} signed a checkpoint of {origin}")
    return Checkpoint(origin, number(said[0], "the tree size"), hash_of(said[1]))


def parse_proof(text: str, word: str) -> tuple[int, list[bytes], str]:
    """Read ``<word> N``, hashes, a blank line and a checkpoint; return N, the hashes and the checkpoint's text."""
    head, blank, note = text.partition("\n\n")
    first, *hashes = head.split("\n")
    if not (blank and first.startswith(word + " ")):
        raise CannotTell(f"a proof has a line `{word} N`, hashes, a blank line and a checkpoint")
    if len(hashes) > MAX_HASHES:
        raise CannotTell(f"a proof has at most {MAX_HASHES} hashes, got {len(hashes)}")
    return number(first[len(word) + 1 :], word), [hash_of(line) for line in hashes], note


def check_inclusion(record: bytes, proof: str, key: Key) -> tuple[Fields, int]:
    """Check that a record stands in the signed log; return its fields and its place."""
    if not proof.startswith(PROOF_HEADER):
        raise CannotTell(f"an inclusion proof starts with {PROOF_HEADER.strip()}")
    index, path, note = parse_proof(proof[len(PROOF_HEADER) :], "index")
    checkpoint = open_checkpoint(note, key)
    if not inclusion_holds(leaf_hash(record), index, checkpoint.size, path, checkpoint.root):
        raise Failed(
            f"the record is not entry {index} of the signed tree of {checkpoint.size}: it or its proof was altered"
        )
    fields = canonical(record, "the record")
    if not isinstance(fields, dict):
        raise CannotTell("the signed entry is no record")
    if (fields.get("log"), fields.get("seq")) != (checkpoint.origin, index):
        said = f"entry {fields.get('seq')} of {fields.get('log')}"
        raise Failed(f"entry {index} of {checkpoint.origin} says it is {said}")
    return fields, index


def check_consistency(old: str, proof: str, key: Key) -> str:
    """Check that the log of a proof's checkpoint extends the one of an older checkpoint."""
    before = open_checkpoint(old, key)
    start, path, note = parse_proof(proof, "old")
    after = open_checkpoint(note, key)
    if start != before.size:
        raise Failed(f"the proof starts from {start} records, the checkpoint kept covers {before.size}")
    if not consistency_holds(before.size, after.size, path, before.root, after.root):
        raise Failed(f"the log of {after.size} records does not extend the {before.size} you kept")
    return f"the log of {after.size} records extends the {before.size} you kept"


# -- receipts


def check_commitments(fields: Fields, receipt: Fields) -> None:
    r"""Check each opened value: HMAC-SHA256(salt, "carag/commit/v1\0" name "\0" value)."""
    commitments = fields.get("commitments")
    for name, opening in receipt["openings"].items():
        fits = isinstance(opening, dict) and set(opening) == {"salt", "value"}
        if not (fits and isinstance(commitments, dict) and isinstance(opening["value"], str)):
            raise Failed(f"the {name} shown is not the one committed to")
        message = b"carag/commit/v1\0" + name.encode() + b"\0" + opening["value"].encode()
        said = hmac.new(unbase64url(opening["salt"]), message, hashlib.sha256).digest()
        if base64url(said) != commitments.get(name):
            raise Failed(f"the {name} shown is not the one committed to")


def check_passages(fields: Fields, receipt: Fields) -> None:
    """Check that each passage has the text the record names, in its order, and that none is missing."""
    named, shown = hits_of(fields), receipt["hits"]
    if len(named) != len(shown):
        raise Failed(f"the record names {len(named)} passages, the receipt shows {len(shown)}")
    for place, hit in enumerate(named):
        passage = shown[place]
        if not (isinstance(passage, dict) and set(passage) == {"chunk", "text"}):
            raise Failed(f"passage {place + 1} is not the text of chunk {hit['c']}")
        text = passage["text"]
        digest = hashlib.sha256(text.encode()).digest() if isinstance(text, str) else b""
        if passage["chunk"] != hit["c"] or base64url(digest) != hit["t"]:
            raise Failed(f"passage {place + 1} is not the text of chunk {hit['c']}")


def check_masks(fields: Fields, _receipt: Fields) -> None:
    """Check that some recorded pair (required, forbidden) admits each passage's word, and that a refusal has none."""
    hits, policy = hits_of(fields), fields.get("policy") or {}
    if fields.get("outcome") == "refuse" and (hits or fields.get("index")):
        raise Failed("a refused request has passages or searched an index")
    try:
        pairs = [*policy["masks"], *policy.get("reopened", ())] if hits else []
        for hit in hits:
            if not any(
                hit["p"] & (required | forbidden | CONTROL_BITS) == required | VERSION_WORD
                for required, forbidden in pairs
            ):
                raise Failed(f"chunk {hit['c']} carries word {hit['p']:#010x}, which no recorded mask admits")
    except (KeyError, TypeError, ValueError) as error:
        raise CannotTell(f"the record's policy cannot be read: {error}") from error


RECEIPT_CHECKS = (check_commitments, check_passages, check_masks)
"""What is checked of a receipt once its record is proved: each takes the record's fields and the receipt's."""


def hits_of(fields: Fields) -> list[Fields]:
    """Return the record's hits, each with chunk id, text hash and word."""
    hits = fields.get("hits", [])
    for hit in hits if isinstance(hits, list) else [None]:
        if not (isinstance(hit, dict) and isinstance(hit.get("p"), int) and {"c", "t"} <= set(hit)):
            raise CannotTell("the record's hits are of a form unknown here")
    return list(hits)


def check_receipt(data: bytes, key: Key) -> str:
    """Check a receipt file."""
    if not data.endswith(b"\n"):
        raise CannotTell("a receipt ends in a newline")
    receipt = canonical(data[:-1], "the receipt")
    if not isinstance(receipt, dict) or receipt.get("format") != RECEIPT_FORMAT:
        raise CannotTell(f"not a receipt of format {RECEIPT_FORMAT}")
    kinds = {"openings": dict, "hits": list, "proof": str, "record": str}
    if set(receipt) != RECEIPT_KEYS or not all(isinstance(receipt[k], kind) for k, kind in kinds.items()):
        raise CannotTell("a receipt has a record, a proof, openings and hits, and nothing else")
    fields, index = check_inclusion(receipt["record"].encode(), receipt["proof"], key)
    for check in RECEIPT_CHECKS:
        check(fields, receipt)
    closed = sorted(set(fields.get("commitments", {})) - set(receipt["openings"]))
    more = f"; not disclosed: {', '.join(closed)}" if closed else ""
    return (
        f"record {index} of {key.name} is as the log signed it, and so are texts, question and answer{more}"
    )


# -- directories


def check_proof_directory(path: Path, key: Key) -> str:
    """Check what `carag audit prove` wrote."""
    proof = text_of(read(path / "proof.tlog-proof"), "the proof")
    _, index = check_inclusion(read(path / "record.json"), proof, key)
    return f"record {index} of {key.name} is as the log signed it"


def check_export(path: Path, key: Key) -> str:
    """Check what `carag audit export` wrote: every record, from the first to the last."""
    checkpoint = open_checkpoint(text_of(read(path / "checkpoint"), "the checkpoint"), key)
    leaves: list[bytes] = []
    with (path / "records.jsonl").open("rb") as lines:
        for line in lines:
            fields, seq = canonical(line.rstrip(b"\n"), f"record {len(leaves)}"), len(leaves)
            if (fields.get("log"), fields.get("seq")) != (key.name, seq) or not line.endswith(b"\n"):
                raise Failed(f"line {seq + 1} is not record {seq} of {key.name}")
            leaves.append(leaf_hash(line[:-1]))
    if (len(leaves), tree_root(leaves)) != (checkpoint.size, checkpoint.root):
        raise Failed(f"these {len(leaves)} records are not the {checkpoint.size} that the log signed")
    return f"{len(leaves)} records of {key.name} are as the log signed them"


# -- one spelling of everything


def canonical(data: bytes, what: str) -> Any:
    """Read canonical JSON: what does not encode to the same bytes again is refused."""
    try:
        value = json.loads(text_of(data, what), parse_float=no_number, parse_constant=no_number)
        again = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise CannotTell(f"{what} is not JSON as records have it: {error}") from error
    if again != data or has_boolean(value):
        raise CannotTell(f"{what} is not canonical JSON")
    return value


def no_number(text: str) -> NoReturn:
    """Refuse floats."""
    raise ValueError(f"numbers are integers here, got {text}")


def has_boolean(value: Any) -> bool:
    """Say whether there is a boolean anywhere inside."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, bool) or any(has_boolean(item) for item in inside)


def number(text: str, what: str) -> int:
    """Read a plain decimal number below 2**63."""
    if not re.fullmatch("0|[1-9][0-9]{0,18}", text) or int(text) > MAX_NUMBER:
        raise CannotTell(f"{what} is {text!r}; want a plain number below 2**63")
    return int(text)


def hash_of(text: str) -> bytes:
    """Read a SHA-256 hash in base64."""
    data = unbase64(text, "a hash")
    if len(data) != 32:
        raise Failed(f"a hash has {len(data)} bytes instead of 32")
    return data


def unbase64(text: str, what: str) -> bytes:
    """Read standard base64 in its one spelling."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (ValueError, binascii.Error) as error:
        raise CannotTell(f"{what} is not base64: {text!r}") from error
    if base64.b64encode(data).decode() != text:
        raise CannotTell(f"{what} is not in its one spelling as base64: {text!r}")
    return data


def base64url(data: bytes) -> str:
    """Write base64url without padding, as records do."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unbase64url(text: Any) -> bytes:
    """Read a salt: 32 bytes in base64url without padding."""
    if isinstance(text, str) and re.fullmatch("[A-Za-z0-9_-]{43}", text):
        data = base64.urlsafe_b64decode(text + "=")
        if base64url(data) == text:
            return data
    raise Failed(f"a salt is 32 bytes in base64url, got {text!r}")


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


# -- the command


def find_key(given: str | None, path: Path) -> tuple[Key, str]:
    """Take the key that was given, or else the one lying in the directory; say which."""
    if given is not None:
        text = text_of(read(Path(given)), "the vkey") if Path(given).exists() else given
        return parse_vkey(text), ""
    if not (path / "vkey").is_file():
        raise CannotTell("give the log's public key with --key")
    note = (
        "note: the key is the one lying in the directory; whoever made the directory chose it, so compare it"
    )
    return parse_vkey(text_of(read(path / "vkey"), "the vkey")), note


def judge(path: Path, key: Key, old: str | None) -> str:
    """Find out what lies at a path, and check it."""
    if path.is_dir():
        return (check_export if (path / "records.jsonl").exists() else check_proof_directory)(path, key)
    data = read(path)
    if old is not None:
        return check_consistency(text_of(read(Path(old)), "the checkpoint"), text_of(data, "the proof"), key)
    if data.startswith(b"{"):
        return check_receipt(data, key)
    checkpoint = open_checkpoint(text_of(data, "the checkpoint"), key)
    return f"{key.name} signed a checkpoint of {checkpoint.size} records"


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(description="Check a receipt, a proof or an exported log.")
    parser.add_argument(
        "path", help="receipt, checkpoint, consistency proof, or directory of prove or export"
    )
    parser.add_argument("--key", help="the log's vkey, or a file that holds it")
    parser.add_argument("--old", help="a checkpoint you kept, for a consistency proof")
    given = parser.parse_args(arguments)
    try:
        key, note = find_key(given.key, Path(given.path))
        print("verified:", judge(Path(given.path), key, given.old))
    except Failed as failure:
        print("FAILED:", failure)
        return 1
    except (CannotTell, OSError, ValueError, TypeError, AttributeError) as doubt:
        print("cannot tell:", doubt)
        return 2
    print(note, end="\n" if note else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
