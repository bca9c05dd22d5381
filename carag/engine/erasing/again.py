"""Erase documents again that a backup from before their erasure has brought back: those that its statements name.

A receipt shows that documents were erased, and on which legal basis, but not which ones. A statement, the id of one of
them and the salt of its hash, shows that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.audit.receipts.erased import ErasureStatement
from carag.audit.records.custody import DocumentErasure, salted_id
from carag.engine.corpus import NO_EMBEDDER, open_corpus
from carag.engine.engine import Engine
from carag.errors import MALFORMED, CorruptFile, InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def read_statements(content: bytes) -> list[ErasureStatement]:
    r"""Read statements, one a line, as ``carag erase --out`` writes each into a file.

    Raises InvalidArgument if a line is anything else.

    Examples
    --------
    >>> read_statements(ErasureStatement(7, "memo/7", bytes(16)).to_bytes())[0].id
    'memo/7'
    """
    found = []
    for number, line in enumerate(content.splitlines(keepends=True), start=1):
        try:
            found.append(ErasureStatement.parse(line))
        except (*MALFORMED, CorruptFile) as error:
            raise InvalidArgument(
                f"line {number} of the statements is not one of an erased document ({error}); want statements as they "
                "were given out with the erasure"
            ) from error
    return found


class LostErasures:
    """Erasures that a backup of ``size`` records lacks, by the numbers of their records, and which documents they name.

    Raises InvalidArgument if a statement does not belong to any of them, unless the backup may have that record.
    """

    def __init__(
        self, size: int, erasures: Mapping[int, DocumentErasure], statements: list[ErasureStatement]
    ) -> None:
        self._erasures = erasures
        self._named: dict[int, dict[str, bytes]] = {}
        for one in statements:
            erasure = erasures.get(one.record)
            if erasure is None and one.record < size:
                continue
            if erasure is None:
                raise InvalidArgument(
                    f"document {quoted(one.id)} was erased by record {one.record}, of which no receipt was given; give "
                    "the receipt too, which states the legal basis"
                )
            if (hashed := salted_id(one.id, one.salt)) not in erasure.ids:
                raise InvalidArgument(
                    f"record {one.record} is not about document {quoted(one.id)} with this salt; give the statement "
                    "as it was given out"
                )
            self._named.setdefault(one.record, {})[one.id] = hashed

    @property
    def unnamed(self) -> int:
        """How many erased documents no statement names: they may be back."""
        return sum(
            len({*erasure.ids} - {*self._named.get(record, {}).values()})
            for record, erasure in self._erasures.items()
        )

    def erase(self, home: Path) -> int:
        """Erase again, in a store that is not open, those that are named and back; return their number.

        The approver on record is the first erasure's record, which two persons made.
        """
        with open_corpus(home) as store:
            back = {seq: [*store.documents.content_hashes([*named])] for seq, named in self._named.items()}
        if not any(back.values()):
            return 0
        with Engine.open(home, create=False, embedder=NO_EMBEDDER) as engine:
            for seq, ids in sorted(back.items()):
                if ids:
                    approver = f"record {seq} before the restore"
                    engine.erase(ids, basis=self._erasures[seq].basis, approver=approver)
        return sum(map(len, back.values()))
