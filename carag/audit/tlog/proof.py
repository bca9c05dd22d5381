"""Read and write files with inclusion and consistency proofs, each with the signed checkpoint to which it leads.

An inclusion proof is written as ``c2sp.org/tlog-proof@v1`` without its optional ``extra`` line, which nothing
authenticates; a consistency proof as the request body of ``c2sp.org/tlog-witness``, so that it can be posted to a
witness. Both are parsed strictly; :mod:`carag.audit.tlog.merkle` verifies them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from carag.audit.tlog.checkpoint import MAX_TREE_SIZE
from carag.audit.tlog.encoding import b64, unb64
from carag.audit.tlog.note import Note
from carag.errors import CorruptFile

_HEADER: Final = "c2sp.org/tlog-proof@v1\n"
"""First line of an inclusion proof."""
_MAX_HASHES: Final = 63
"""Greatest number of hashes in a proof: the depth of the largest tree."""


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """Proof that the record at ``index`` is in the tree of the checkpoint.

    Parameters
    ----------
    index : int
        Position of the leaf, from 0.
    hashes : tuple of bytes
        RFC 6962 inclusion proof, the leaf's sibling first.
    """

    index: int
    hashes: tuple[bytes, ...]
    checkpoint: Note

    def to_text(self) -> str:
        """Write the proof file."""
        return _HEADER + _join("index", self.index, self.hashes, self.checkpoint)

    @classmethod
    def parse(cls, text: str) -> InclusionProof:
        """Read a proof file; CorruptFile if it is malformed or not in its canonical form."""
        if not text.startswith(_HEADER):
            raise CorruptFile(f"an inclusion proof starts with {_HEADER.strip()}")
        proof = cls(*_split("index", text.removeprefix(_HEADER)))
        if proof.to_text() != text:
            raise CorruptFile("an inclusion proof is not in its canonical spelling")
        return proof


@dataclass(frozen=True, slots=True)
class ConsistencyProof:
    """Proof that the tree of ``old`` records is a prefix of the tree of the checkpoint.

    Parameters
    ----------
    hashes : tuple of bytes
        RFC 6962 consistency proof.
    """

    old: int
    hashes: tuple[bytes, ...]
    checkpoint: Note

    def to_text(self) -> str:
        """Write the proof file."""
        return _join("old", self.old, self.hashes, self.checkpoint)

    @classmethod
    def parse(cls, text: str) -> ConsistencyProof:
        """Read a proof file; CorruptFile if it is malformed or not in its canonical form."""
        proof = cls(*_split("old", text))
        if proof.to_text() != text:
            raise CorruptFile("a consistency proof is not in its canonical spelling")
        return proof


def _join(word: str, number: int, hashes: tuple[bytes, ...], checkpoint: Note) -> str:
    lines = "".join(f"{b64(value)}\n" for value in hashes)
    return f"{word} {number}\n{lines}\n{checkpoint.to_text()}"


def _split(word: str, text: str) -> tuple[int, tuple[bytes, ...], Note]:
    head, blank, note = text.partition("\n\n")
    first, *lines = head.split("\n")
    number = first.removeprefix(f"{word} ")
    if not (blank and first.startswith(f"{word} ") and number.isdecimal() and len(number) <= 19):
        raise CorruptFile(f"a proof has a line '{word} N', hashes, a blank line and a checkpoint")
    if int(number) > MAX_TREE_SIZE or len(lines) > _MAX_HASHES:
        raise CorruptFile(f"a proof is for at most 2**63 - 1 records and has at most {_MAX_HASHES} hashes")
    return int(number), tuple(unb64(line) for line in lines), Note.parse(note)
