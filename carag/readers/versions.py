"""Name the readers of files by version, so that a store can tell which version read a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


READER_VERSIONS: Final = {
    ".csv": "csv/1",
    ".docx": "docx/2",
    ".eml": "eml/1",
    ".htm": "html/2",
    ".html": "html/2",
    ".pdf": "pdf/2",
    ".pptx": "pptx/1",
    ".tsv": "csv/1",
    ".xhtml": "html/2",
    ".xlsx": "xlsx/1",
}
"""Readers by file extension. A version must change whenever the same file may be read differently; that of e-mails also
with any other, because their attachments are read too."""
_BEFORE_NOTED: Final = (".docx", ".htm", ".html", ".pdf", ".xhtml")
"""Formats that were read before stores kept the reader."""


def may_read_otherwise(facts: Mapping[str, Any]) -> bool:
    """Tell whether a stored document was read from a file by a different version of its reader.

    Stores before 0.3 did not keep the reader: a document with pages, or whose id ends like the name of such a file, had
    a reader.

    Examples
    --------
    >>> [may_read_otherwise(one) for one in ({"id": "a.pdf"}, {"id": "a.pdf", "read_by": "pdf/2"}, {"id": "a.md"})]
    [True, False, False]
    """
    read_by = facts.get("read_by")
    if read_by is not None:
        return read_by not in READER_VERSIONS.values()
    return bool(facts.get("pages")) or str(facts.get("id", "")).lower().endswith(_BEFORE_NOTED)
