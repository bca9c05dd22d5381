"""Encode a record before its sequence number and commit time are known.

Hashing texts, committing to values and encoding take most of an append's time and need no order, so callers do them in
parallel, with placeholders of full width for the two numbers; the one writing thread puts in the real ones. The result
is, byte for byte, what :meth:`~carag.audit.records.record.Record.to_bytes` gives, which readers check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from carag.audit.records.commitment import SALT_SIZE, Opening, random_parts
from carag.audit.records.event import UNDISCLOSED
from carag.audit.records.record import Record
from carag.audit.records.retention import DEFAULT_CLASS
from carag.audit.tlog.encoding import MAX_INTEGER
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from carag.audit.records.event import Event
    from carag.audit.records.hits import Passage


_ID_SIZE: Final = 16
_SEQ: Final = b'"seq":%d,'
_TIME: Final = b'"tc":%d,'


@dataclass(frozen=True, slots=True)
class Draft:
    """A record without sequence number and commit time; the template has the greatest possible ones as placeholders."""

    template: bytes
    event: Event
    openings: Mapping[str, Opening]
    texts: tuple[tuple[str, str], ...]

    @classmethod
    def of(
        cls,
        origin: str,
        event: Event,
        secrets: Mapping[str, str | None],
        passages: Sequence[Passage],
        retain: str = DEFAULT_CLASS,
    ) -> Draft:
        """Commit to the secrets and encode the record.

        Raises InvalidArgument if the record would be malformed, too long, or contradict itself.
        """
        kept = {name: value for name, value in secrets.items() if value is not None}
        fresh = random_parts(_ID_SIZE, *[SALT_SIZE] * len(kept))
        openings = {
            name: Opening(salt, value) for (name, value), salt in zip(kept.items(), fresh[1:], strict=True)
        }
        record = Record(
            origin,
            MAX_INTEGER,
            fresh[0],
            MAX_INTEGER,
            event,
            {name: opening.commitment(name) for name, opening in openings.items()},
            tuple(passage.hit for passage in passages),
            retain=retain,
        )
        template = record.to_bytes()
        if wrong := "; ".join(record.contradictions()):
            raise InvalidArgument(f"this record contradicts itself: {wrong}")
        for stand_in in (_SEQ, _TIME):  # a key's quotes are not escaped, so no text can contain these bytes
            if template.count(stand_in % MAX_INTEGER) != 1:
                raise InvalidArgument(
                    f"a field holds {MAX_INTEGER}, which is the placeholder of an unknown number"
                )
        texts = tuple((passage.chunk, passage.text) for passage in passages)
        return cls(template, event, openings, texts)

    def placed(self, seq: int, committed: int) -> bytes:
        """Return the record's bytes with its sequence number and commit time."""
        return self.template.replace(_SEQ % MAX_INTEGER, _SEQ % seq, 1).replace(
            _TIME % MAX_INTEGER, _TIME % committed, 1
        )


def disclosed(openings: Mapping[str, Opening]) -> dict[str, Opening]:
    """Return the openings without those that no receipt contains."""
    return {name: opening for name, opening in openings.items() if name not in UNDISCLOSED}
