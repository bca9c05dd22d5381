"""Export a log for others: every record with its proofs, and no personal data.

==================  ========================================================================================
``records.jsonl``   each record's bytes, verbatim, one per line in order (canonical JSON has no newline)
``checkpoint``      the newest signed checkpoint, over exactly these records
``hashes``          the stored tree: 32 bytes per node, in the order of Go's ``tlog.StoredHashIndex``, so that any
                    inclusion or consistency proof can be made from it; it is derived from the records
``vkey``            the public key that verified the checkpoint
==================  ========================================================================================

Salts and values of the commitments (who asked, question, answer, lists of entities) are not exported, not even sealed;
nor are passages' texts and the signing key. Only records, tree and checkpoint are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.audit._files import write_atomically
from carag.audit.auditor.examine import Examination, examine
from carag.audit.receipts.verify import Verdict
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from carag.audit.auditor.examine import Kept
    from carag.audit.auditor.reader import LogReader


def export_log(reader: LogReader, directory: Path, kept: Iterable[Kept] = ()) -> Examination:
    """Write a log into a new or empty directory, and examine it at the same time.

    The checkpoint is written last, and only for a consistent log: without it the directory is not an export. Raises
    InvalidArgument if the directory is not empty, or cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise InvalidArgument(f"{directory} is not empty; name a new directory for the export")
        with (directory / "records.jsonl").open("xb") as records:
            found = examine(reader, kept, visit=lambda _, body: records.writelines((body, b"\n")))
        if found.verdict is not Verdict.VERIFIED:
            (directory / "records.jsonl").unlink()
            return found
        with (directory / "hashes").open("xb") as hashes:
            for _, value in reader.nodes():
                hashes.write(value)
        write_atomically(directory / "vkey", f"{reader.key}\n".encode(), mode=0o644)
        write_atomically(directory / "checkpoint", found.checkpoint.encode(), mode=0o644)
    except OSError as error:
        raise InvalidArgument(f"cannot write the export to {directory}: {error.strerror}") from error
    return found


def write_proof(reader: LogReader, seq: int, directory: Path) -> None:
    """Write ``record.json`` (verbatim), ``proof.tlog-proof`` and ``vkey`` of one record.

    Raises InvalidArgument if there is no such record, or the directory cannot be written; CorruptFile, and nothing is
    written, if the stored nodes do not lead to the signed root.
    """
    body, proof = reader.body(seq), reader.prove(seq)
    reader.check_unchanged()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in (
            ("record.json", body),
            ("proof.tlog-proof", proof.encode()),
            ("vkey", f"{reader.key}\n".encode()),
        ):
            write_atomically(directory / name, data, mode=0o644)
    except OSError as error:
        raise InvalidArgument(f"cannot write the proof to {directory}: {error.strerror}") from error
