"""Prove that a passage was in the index state that a record names, under its word.

A *label* states which word a passage has, from one minute until another. The index state at an instant of the store's
knowledge is one root hash over all labels open at that instant; the record holds it as ``index.snapshot``. A proof can
be checked with SHA-256 alone.

**Entry** of a label, canonical JSON (RFC 8785)::

    {"c": chunk id, "f": minute from which the word holds, "p": word, "t": SHA-256 of the text, "u": seal}

Bytes are base64url without padding, minutes are since 1970 UTC. The *seal* is a salted commitment (``commitment.py``)
to the minute until which the word holds, ``HMAC-SHA256(salt, "carag/commit/v1" NUL "until" NUL decimal)``: a proof
about a day in the past must not reveal when the label changed later, and a neighbour's entry hash, which every proof
shows, must not confirm a guess of the neighbour's text and word. The salt is ``HMAC-SHA256(key, "carag/state/v1" NUL
entry)``, taken over the entry with the bare minute for ``u``, followed by the lists of those who may see the passage,
unless it is for everybody. So the root changes with these lists, of which a proof shows nothing. The key never leaves
the store.

**Place** of a label: ``HMAC-SHA256(key, "carag/state/place/v1" NUL chunk id LF from)``, ``from`` in decimal, read as
256 bits, first bit first. It is keyed because a proof shows other labels' places: under a plain hash of public
accession numbers and minutes, the holder of many proofs could test whether the place of a guessed hidden label is
occupied.

**Root** of a set of labels that share their first ``d`` bits, beginning with all of them and ``d = 0``::

    no label       SHA-256("")
    one label      SHA-256(0x00 || entry)
    all in one half by bit d      the root of that half, d + 1
    otherwise      SHA-256(0x01 || root of those with bit 0 || root of those with bit 1)

**Proof**: the label's ``from``; the opening or the seal of its ``until``; ``path``, the sibling hashes from the leaf
up; and ``sides``, which gives the side of each sibling, L or R. It is valid if folding it up gives the root::

    hash = SHA-256(0x00 || entry)
    L: hash = SHA-256(0x01 || sibling || hash)        R: hash = SHA-256(0x01 || hash || sibling)

A relabel changes only the paths of its own labels, about log2(n) hashes each, whereas a sorted tree such as the log's
would be hashed again from the first insertion on. The root depends on the labels and the key alone, not on the order of
insertion, and proofs reveal only roughly how many other labels there are.

A proof states that in the index state that the record names, this chunk had this text and, from ``from`` on, this
word; if ``until`` is opened, until that minute. It does not state that the chunk had no other label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from carag.audit.records.commitment import COMMITMENT_SIZE, SALT_SIZE, Opening, hmac_sha256
from carag.audit.tlog.encoding import Json, b64url, encode, unb64url
from carag.audit.tlog.merkle import HASH_SIZE, leaf_hash, node_hash
from carag.errors import CorruptFile
from carag.limits import MAX_MINUTE

_DOMAIN: Final = b"carag/state/v1\0"
_PLACE_DOMAIN: Final = b"carag/state/place/v1\0"
_UNTIL: Final = "until"


@dataclass(frozen=True, slots=True)
class Label:
    """The word of a passage, with the SHA-256 of its text, between two minutes since 1970 UTC."""

    chunk: str
    text_hash: bytes
    word: int
    since: int = 0
    until: int = MAX_MINUTE
    audience: str = ""
    """The lists of those who may see the passage, as canonical JSON; empty for everybody."""

    def seal(self, key: bytes) -> Opening:
        """Return salt and value of the commitment to ``until``, under the store's key."""
        return self.seal_and_leaf(key)[0]

    def leaf(self, key: bytes) -> bytes:
        """Return the hash of the entry."""
        return self.seal_and_leaf(key)[1]

    def seal_and_leaf(self, key: bytes) -> tuple[Opening, bytes]:
        """Return what :meth:`seal` and :meth:`leaf` do."""
        begun = _begun(self.chunk, self.text_hash, self.word, self.since)
        stated = begun + f"{self.until:d}}}{self.audience}".encode()
        seal = Opening(hmac_sha256(key, _DOMAIN + stated), str(self.until))
        return seal, leaf_hash(_ended(begun, seal.commitment(_UNTIL)))


def state_entry(chunk: str, text_hash: bytes, word: int, since: int, seal: bytes) -> bytes:
    """Return the entry of one label, which is hashed as a leaf.

    Examples
    --------
    >>> state_entry("0000000000-26-000001:00000", bytes(32), 0x0800_0001, 28_000_000, bytes(32))[:52]
    b'{"c":"0000000000-26-000001:00000","f":28000000,"p":1'
    """
    return _ended(_begun(chunk, text_hash, word, since), seal)


def _begun(chunk: str, text_hash: bytes, word: int, since: int) -> bytes:
    """Encode an entry up to ``u``, its last field, which is the minute or the seal."""
    rest = f',"f":{since:d},"p":{word:d},"t":"{b64url(text_hash)}","u":'
    return b'{"c":' + encode(chunk) + rest.encode()


def _ended(begun: bytes, seal: bytes) -> bytes:
    return begun + f'"{b64url(seal)}"}}'.encode()


def place(key: bytes, chunk: str, since: int) -> int:
    """Return the place of a label in the tree, 256 bits derived with the store's key.

    Examples
    --------
    >>> place(bytes(32), "0000000000-26-000001:00000", 28_000_000) >> 240
    38874
    """
    return int.from_bytes(hmac_sha256(key, _PLACE_DOMAIN + f"{chunk}\n{since}".encode()))


@dataclass(frozen=True, slots=True)
class StateProof:
    """Proof that a label is in an index state.

    Parameters
    ----------
    since : int
        Minute from which the label's word holds.
    until : Opening or bytes
        Salt and value of the minute until which the word holds, or only the seal.
    path : tuple of bytes
        Sibling hashes, the leaf's first.
    sides : str
        The side of each sibling, ``"L"`` or ``"R"``.
    """

    since: int
    until: Opening | bytes
    path: tuple[bytes, ...]
    sides: str

    def root(self, chunk: str, text_hash: bytes, word: int) -> bytes:
        """Return the root to which this proof leads, for a passage and its word."""
        seal = self.until if isinstance(self.until, bytes) else self.until.commitment(_UNTIL)
        current = leaf_hash(state_entry(chunk, text_hash, word, self.since, seal))
        for sibling, side in zip(self.path, self.sides, strict=True):
            current = node_hash(sibling, current) if side == "L" else node_hash(current, sibling)
        return current

    def holds_at(self, minute: int) -> bool:
        """Tell whether the word holds at a minute, as far as the proof shows."""
        return self.since <= minute and (isinstance(self.until, bytes) or minute < int(self.until.value))

    def sealed(self) -> StateProof:
        """Return the proof without the minute until which the word holds."""
        if isinstance(self.until, bytes):
            return self
        return StateProof(self.since, self.until.commitment(_UNTIL), self.path, self.sides)

    def to_json(self) -> Json:
        """Return the JSON form in a receipt."""
        until: Json = (
            b64url(self.until)
            if isinstance(self.until, bytes)
            else {"salt": b64url(self.until.salt), "value": self.until.value}
        )
        return {"from": self.since, "path": b64url(b"".join(self.path)), "sides": self.sides, "until": until}

    @classmethod
    def from_json(cls, fields: Any) -> StateProof:
        """Read the JSON form; CorruptFile for anything else."""
        match fields:
            case {"from": int(since), "path": str(path), "sides": str(sides), "until": until, **rest} if (
                not rest and 0 <= since <= MAX_MINUTE and set(sides) <= {"L", "R"}
            ):
                hashes = unb64url(path, HASH_SIZE * len(sides))
                siblings = (hashes[at : at + HASH_SIZE] for at in range(0, len(hashes), HASH_SIZE))
                return cls(since, _until(until), tuple(siblings), sides)
        raise CorruptFile("a hit's proof must have from, path, sides and until, and nothing else")


def _until(fields: Any) -> Opening | bytes:
    if isinstance(fields, str):
        return unb64url(fields, COMMITMENT_SIZE)
    match fields:
        case {"salt": str(salt), "value": str(value), **rest} if not rest:
            if (
                value.isascii()
                and value.isdecimal()
                and str(int(value[:11])) == value
                and int(value) <= MAX_MINUTE
            ):
                return Opening(unb64url(salt, SALT_SIZE), value)
    raise CorruptFile("the end of a hit's label must be a seal, or a salt and a minute")
