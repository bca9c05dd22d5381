"""Name the filings of a corpus, one line each, so that others can build the same corpus, or see in what theirs differs.

A line contains hashes of what was read of a filing, and where its chunks start, but no text. Filings without a chunk in
the corpus are named too, because they change the labels of others. There is only one way to write a manifest:
canonical JSON, sorted by accession number.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field, fields, replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from carag.errors import CorruptFile, InvalidArgument
from carag.labelling.chunking import CHUNKER_VERSION
from carag.profiles.edgar.facts.filing import Filing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


_ON_EDGAR: Final = re.compile(r"\d{10}-\d{2}-\d{6}")
_FACTS: Final = tuple(
    one.name for one in fields(Filing) if one.name not in {"documents", "source_id", "provenance"}
)
"""Facts of a filing, from which its label is made; the rest is its text, or says where a fact was read."""
_COMPARED: Final = {"text": "text_sha256", "facts": "facts_sha256", "version of the chunker": "chunker"}


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """One filing of a corpus."""

    accession_number: str
    cik: int | None  # the first; None if none is stated
    form: str | None
    filed: str | None  # ISO 8601
    text_sha256: str  # of ``[[type, text], ...]`` of its documents, as canonical JSON
    facts_sha256: str  # of the facts by name, as canonical JSON
    chunker: str = CHUNKER_VERSION
    places: dict[str, list[int]] = field(default_factory=dict)  # offsets of its chunks, by type of document

    def __post_init__(self) -> None:
        texts = (self.accession_number, self.text_sha256, self.facts_sha256, self.chunker)
        known = [one for one in (self.form, self.filed) if one is not None]
        numbers = [self.cik or 0, *(start for starts in self.places.values() for start in starts)]
        if not all(isinstance(one, str) for one in (*texts, *known)) or any(
            type(n) is not int for n in numbers
        ):
            raise InvalidArgument(f"{self!r}: want texts, whole numbers as CIK and places")

    @classmethod
    def of(cls, filing: Filing) -> Self:
        """Describe a filing as it was read, without any chunk."""
        return cls(
            filing.accession_number,
            filing.ciks[0] if filing.ciks else None,
            filing.form,
            None if filing.filed is None else filing.filed.isoformat(),
            _sha256([[document.type, document.text] for document in filing.documents]),
            _sha256({name: getattr(filing, name) for name in _FACTS}),
        )

    @property
    def path(self) -> str | None:
        """The path of the submission on EDGAR; None if the filing has no accession number of EDGAR, or no CIK."""
        if self.cik is None or not _ON_EDGAR.fullmatch(self.accession_number):
            return None
        return f"edgar/data/{self.cik}/{self.accession_number}.txt"

    def to_json(self) -> str:
        """Write one line, without its end."""
        stated = {one.name: getattr(self, one.name) for one in fields(self)}
        return _canonical({**stated, "path": self.path, "chunks": sum(map(len, self.places.values()))})


Manifest: TypeAlias = dict[str, ManifestEntry]
"""The filings of a corpus, by accession number."""


def described(filings: Iterable[Filing]) -> Manifest:
    """Describe filings, of two with one number the first."""
    found: Manifest = {}
    for filing in filings:
        if filing.accession_number not in found:
            found[filing.accession_number] = ManifestEntry.of(filing)
    return found


def with_chunks(manifest: Manifest, places: Iterable[tuple[str, str, int]]) -> Manifest:
    """Add where chunks start: the accession number of each, the type of its document, and its offset there."""
    starts: dict[str, dict[str, list[int]]] = {name: defaultdict(list) for name in manifest}
    for number, kind, start in sorted(places):
        starts[number][kind].append(start)
    return {name: replace(one, places=dict(starts[name])) for name, one in manifest.items()}


def manifest_bytes(manifest: Manifest) -> bytes:
    """Write a manifest."""
    return "".join(f"{manifest[name].to_json()}\n" for name in sorted(manifest)).encode()


def manifest_sha256(manifest: Manifest) -> str:
    """Hash the file that `manifest_bytes` gives."""
    return hashlib.sha256(manifest_bytes(manifest)).hexdigest()


def read_manifest(path: Path) -> Manifest:
    """Read a manifest, gzipped if its name ends in ``.gz``; CorruptFile unless `manifest_bytes` wrote it."""
    found: Manifest = {}
    number = 0
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        for line in data.splitlines():
            number += 1
            got: dict[str, Any] = json.loads(line)
            del got["path"], got["chunks"]
            found[got["accession_number"]] = ManifestEntry(**got)
        is_canonical = manifest_bytes(found) == data
    except (ValueError, TypeError, KeyError, AttributeError, EOFError, gzip.BadGzipFile) as error:
        raise CorruptFile(
            f"{path}, line {number}: not a valid line of a manifest: {error!r}; copy the file again"
        ) from error
    if not found or not is_canonical:
        raise CorruptFile(f"{path} is empty, unsorted or not in canonical form; copy the file again")
    return found


def selection(manifest: Manifest) -> dict[str, set[tuple[str, int]]]:
    """Return the chunks of each filing, by type of document and offset."""
    return {
        name: {(kind, start) for kind, starts in one.places.items() for start in starts}
        for name, one in manifest.items()
    }


def check_same(wanted: Manifest, found: Manifest) -> None:
    """Compare filings with a manifest; InvalidArgument names each that is missing, or differs, and in what."""
    odd = []
    for name, one in sorted(wanted.items()):
        other = found.get(name)
        differs = [what for what, key in _COMPARED.items() if getattr(one, key) != getattr(other, key, None)]
        if other is None or differs:
            odd.append(f"{name} ({'missing' if other is None else ', '.join(differs)})")
    if odd:
        raise InvalidArgument(
            f"of {len(wanted)} filings in the manifest, {len(odd)} are missing or differ in what is named: "
            f"{', '.join(odd)}; use the filings and the version that the manifest was written with"
        )


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=date.isoformat)


def _sha256(value: object) -> str:
    return hashlib.sha256(_canonical(value).encode()).hexdigest()
