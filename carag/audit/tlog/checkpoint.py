"""Read and write checkpoints: origin, size and root hash of a log (``c2sp.org/tlog-checkpoint``).

A checkpoint has three lines and no extension lines, so that monitors and witnesses can check all that it states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from carag.audit.tlog.encoding import b64, unb64
from carag.audit.tlog.merkle import HASH_SIZE
from carag.audit.tlog.note import check_key_name
from carag.errors import CorruptFile, InvalidArgument
from carag.limits import quoted

MAX_TREE_SIZE: Final = (1 << 63) - 1
"""Greatest number of records of a log."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a log: how many records it has and the root hash over them.

    Examples
    --------
    >>> from carag.audit.tlog.merkle import EMPTY_ROOT
    >>> print(Checkpoint("log.example/1", 0, EMPTY_ROOT).to_text(), end="")
    log.example/1
    0
    47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=
    """

    origin: str
    size: int
    root: bytes

    def __post_init__(self) -> None:
        check_key_name(self.origin)
        if not 0 <= self.size <= MAX_TREE_SIZE:
            raise InvalidArgument(f"a tree size is in 0..2**63 - 1, got {self.size}")
        if len(self.root) != HASH_SIZE:
            raise InvalidArgument(f"a root hash has {HASH_SIZE} bytes, got {len(self.root)}")

    def to_text(self) -> str:
        """Write the text that is signed."""
        return f"{self.origin}\n{self.size}\n{b64(self.root)}\n"

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """Read a checkpoint's text (without signatures).

        Raises
        ------
        CorruptFile
            If it is not exactly the three lines in their canonical form.
        """
        lines = text.split("\n")
        if len(lines) != 4:
            raise CorruptFile(f"a checkpoint has three lines, each ending in a newline; got {quoted(text)}")
        try:
            checkpoint = cls(lines[0], int(lines[1]), unb64(lines[2]))
        except ValueError as error:
            raise CorruptFile(f"not a checkpoint: {error}") from error
        if checkpoint.to_text() != text:
            raise CorruptFile("a checkpoint is not in its canonical spelling")
        return checkpoint
