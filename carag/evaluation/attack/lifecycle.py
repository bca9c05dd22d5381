"""Checks of changes: what a label or a deletion leaves behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.evaluation.attack.findings import Finding, NotTried
from carag.evaluation.attack.target import vector_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from carag.evaluation.attack.probe import Probe
    from carag.evaluation.attack.target import Document

_K: Final = 20


def _changed(
    probe: Probe, change: Callable[[list[Document]], object], *names: str, right: str
) -> Iterator[Finding]:
    """Plant rows, see that they are found, change them, and search again: none of them may come back."""
    topic = probe.word()
    rows = probe.reports(topic, 3, probe.reader, *names)
    probe.plant(rows + probe.reports(topic, 3, probe.reader))
    ids, question = {one.id for one in rows}, f"{topic} report"
    if not ids <= {*probe.rows(question, _K).ids}:  # this also fills caches of answers and of permissions
        raise NotTried("not all rows were found before the change")
    change(rows)
    for k in (_K, 2, 1):
        if gone := ids & {*probe.seen(question, k, probe.reader).ids}:
            yield Finding(f"{question!r}, k = {k}, after the change", ", ".join(sorted(gone)), right)


def _closed_again(probe: Probe, rows: list[Document]) -> None:
    probe.plant([replace(one, audience=frozenset({probe.officer})) for one in rows])


def stale(probe: Probe) -> Iterator[Finding]:
    """See whether a row is returned after its label was taken from the reader."""
    relabel = probe.offers("relabel")

    def change(rows: list[Document]) -> None:
        for one in rows:
            probe.done("relabel", relabel, one.id, frozenset({probe.officer}))

    for names in ((), (probe.officer,)):
        yield from _changed(probe, change, *names, right="no row that was taken from the reader")


def replaced(probe: Probe) -> Iterator[Finding]:
    """See whether a row keeps its old label after the document was added again with another one."""
    right = "no row whose new label is for another reader"
    yield from _changed(probe, lambda rows: _closed_again(probe, rows), right=right)

    def rewrite(rows: list[Document]) -> None:
        texts = [one.text for one in probe.reports(probe.word(), len(rows), probe.officer)]
        _closed_again(probe, [replace(one, text=text) for one, text in zip(rows, texts, strict=True)])

    yield from _changed(probe, rewrite, probe.officer, right=right)


def deleted(probe: Probe) -> Iterator[Finding]:
    """See whether a deleted row is returned."""
    probe.offers("delete")
    yield from _changed(probe, lambda rows: probe.delete([one.id for one in rows]), right="no deleted row")


def added_again(probe: Probe) -> Iterator[Finding]:
    """See whether a deleted row that is added again for another reader has its old label."""
    probe.offers("delete")

    def change(rows: list[Document]) -> None:
        probe.delete([one.id for one in rows])
        _closed_again(probe, rows)

    yield from _changed(probe, change, right="no row whose new label is for another reader")


def files(probe: Probe) -> Iterator[Finding]:
    """See whether texts or vectors of deleted documents are still in the target's files."""
    paths, _ = probe.offers("files"), probe.offers("delete")
    rows = probe.reports(probe.word(), 20, probe.reader)
    probe.plant(rows + probe.reports(probe.word(), 20, probe.reader))
    if not _standing(rows, probe.done("files", paths)):
        raise NotTried("neither texts nor vectors were found in the files before the deletion")
    probe.delete([one.id for one in rows])
    after = _standing(rows, probe.done("files", paths))
    for what in sorted({*after.values()}):
        places = sorted(place.name for place, found in after.items() if found == what)
        came = f"{what} in {len(places)} files, such as {places[0]}"
        yield Finding("bytes of 20 deleted documents in all files", came, "nothing of them in any file")


def _standing(rows: Iterable[Document], paths: Iterable[object]) -> dict[Path, str]:
    """Return the files that hold a text or a vector of documents, and which of the two."""
    marks: dict[bytes, str] = {}
    for one in rows:
        word, vector = one.text.rstrip(".").split()[-1], vector_of(one.text)  # a word that no other text has
        marks |= {word.encode(encoding): "texts" for encoding in ("utf-8", "utf-16-le")}
        marks |= {vector.astype(kind).tobytes()[:32]: "vectors" for kind in ("<f4", ">f4", "<f8")}
    found = {}
    for path in map(Path, map(str, paths)):
        content = path.read_bytes() if path.is_file() else b""  # the target may remove files at any time
        if what := next((what for mark, what in marks.items() if mark in content), ""):
            found[path] = what
    return found
