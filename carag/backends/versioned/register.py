"""The register of an engine without transactions: which epoch is the last and what holds at it, as one text."""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from carag.errors import MALFORMED, BackendFault

_FORMAT: Final = 2
"""Since rows have audiences."""


class Sweep(NamedTuple):
    """How far ended versions have been removed, and how far they may be."""

    swept: int
    """Versions that ended at this epoch or before have been removed."""
    removable: int
    """Versions that ended at this epoch or before may be removed: no reader can ask for them any more."""
    earliest: int
    """The first epoch that may still be asked for."""
    mark: int
    """The epoch that becomes ``earliest`` when it is old enough."""
    marked_at: float
    """When ``mark`` was the last epoch: seconds since 1970, by the writer's clock."""

    def moved(self, epoch: int, now: float, keep: float | None) -> Sweep:
        """Return the sweep at a new epoch, if each may be asked for ``keep`` seconds after it was replaced.

        Examples
        --------
        >>> Sweep(0, 0, 0, 1, 100.0).moved(2, 130.0, 60.0)
        Sweep(swept=0, removable=0, earliest=0, mark=1, marked_at=100.0)
        >>> Sweep(0, 0, 0, 1, 100.0).moved(3, 170.0, 60.0)
        Sweep(swept=0, removable=0, earliest=1, mark=3, marked_at=170.0)
        """
        done = self._replace(swept=self.removable)
        if keep is None or now - self.marked_at < keep:
            return done
        return Sweep(self.removable, self.earliest, self.mark, epoch, now)


class Register(NamedTuple):
    """What holds at an epoch."""

    epoch: int
    dim: int
    """Length of every vector; 0 before the first."""
    rows: tuple[int, ...]
    """Live rows of each part."""
    words: dict[int, int]
    """Live rows by word, ascending."""
    sweep: Sweep

    @classmethod
    def empty(cls, parts: int) -> Register:
        """Return the register before the first batch."""
        return cls(0, 0, (0,) * parts, {}, Sweep(0, 0, 0, 0, 0.0))

    def text(self) -> str:
        """Return the register as JSON, after the number of its format.

        Examples
        --------
        >>> Register(1, 2, (1,), {134217729: 1}, Sweep(0, 0, 0, 1, 5.0)).text()
        '[2,1,2,[1],[[134217729,1]],[0,0,0,1,5.0]]'
        """
        listed = (_FORMAT, self.epoch, self.dim, self.rows, list(self.words.items()), self.sweep)
        return json.dumps(listed, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Register:
        """Read what :meth:`text` wrote; raise BackendFault if it is not that."""
        try:
            form, epoch, dim, rows, words, sweep = json.loads(text)
            if form != _FORMAT:
                raise ValueError(form)
            return cls(int(epoch), int(dim), tuple(map(int, rows)), dict(words), Sweep(*sweep))
        except MALFORMED as error:
            raise BackendFault(
                "the register of a backend is not valid, or was written before rows had audiences; restore it, "
                "or build it again"
            ) from error


class Load(NamedTuple):
    """The progress of a load."""

    position: int
    """Rows of its stream that are written."""
    register: Register
    """The register once it is published."""


class BegunBatch(NamedTuple):
    """The batch that a writer began; it is complete if the last epoch is its own."""

    epoch: int
    """The epoch that it makes."""
    name: str
    load: Load | None = None
    """None for an ordinary change, which the next batch undoes."""

    def text(self) -> str:
        """Return the batch as a line.

        Examples
        --------
        >>> BegunBatch(7, "batch/1").text(), BegunBatch.read("7 batch/1") == BegunBatch(7, "batch/1")
        ('7 batch/1', True)
        """
        of_load = "" if self.load is None else f" {self.load.position} {self.load.register.text()}"
        return f"{self.epoch} {self.name}{of_load}"

    @classmethod
    def read(cls, text: str) -> BegunBatch:
        """Read what :meth:`text` wrote, or an empty text if nothing was begun; BackendFault for anything else."""
        if not text:
            return cls(0, "")
        try:
            epoch, name, *rest = text.split(" ", 3)
            load = Load(int(rest[0]), Register.read(rest[1])) if rest else None
            return cls(int(epoch), name, load)
        except (IndexError, ValueError) as error:
            raise BackendFault(
                "a backend's note of what was begun is not valid; restore it, or build it again"
            ) from error

    def load_after(self, current: Register) -> Load | None:
        """Return the load that is open at the last epoch, if one is."""
        return self.load if self.epoch > current.epoch else None
