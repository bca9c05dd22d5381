"""Checks of changes: what a label or a deletion leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.evaluation.attack.findings import Finding, NotTried
from carag.evaluation.attack.target import Document, vector_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from carag.evaluation.attack.probe import Probe

_K: Final = 20


def _changed(
    probe: Probe, check: str, change: Callable[[list[Document]], object], *audience: str, right: str
) -> Iterator[Finding]:
    """Plant rows, see that they are found, change them, and search again: none of them may come back."""
    topic = probe.word()
    rows = probe.reports(topic, 3, probe.reader, *audience)
    probe.plant(rows + probe.reports(topic, 3, probe.reader))
    question = f"{topic} report"
    before = probe.rows(question, _K)  # also fills caches of answers and of permissions
    if not {one.id for one in rows} <= set(before.ids):
        raise NotTried("not all rows were found before the change")
    change(rows)
    for k in (_K, 2, 1):
        seen = probe.seen(question, k, probe.reader)
        if gone := {one.id for one in rows} & set(seen.ids):
            yield Finding(
                check, f"{question!r}, k = {k}, at once after the change", ", ".join(sorted(gone)), right
            )


def stale(probe: Probe) -> Iterator[Finding]:
    """See whether a row is returned after its label was taken from the reader."""
    relabel = probe.offers("relabel")

    def change(rows: list[Document]) -> None:
        for one in rows:
            probe.done("relabel", relabel, one.id, frozenset({probe.officer}))

    yield from _changed(probe, "stale", change, right="no row that was taken from the reader")
    yield from _changed(probe, "stale", change, probe.officer, right="no row that was taken from the reader")


def replaced(probe: Probe) -> Iterator[Finding]:
    """See whether a row keeps its old label after the document was added again with another one."""

    def change(rows: list[Document]) -> None:
        probe.plant([Document(one.id, one.text, frozenset({probe.officer})) for one in rows])

    yield from _changed(probe, "replaced", change, right="no row whose new label is for another reader")

    def rewrite(rows: list[Document]) -> None:
        texts = probe.reports(probe.word(), len(rows), probe.officer)
        probe.plant([Document(one.id, new.text, new.audience) for one, new in zip(rows, texts, strict=True)])

    yield from _changed(
        probe, "replaced", rewrite, probe.officer, right="neither the old text nor the old label"
    )


def deleted(probe: Probe) -> Iterator[Finding]:
    """See whether a deleted row is returned."""
    probe.offers("delete")
    yield from _changed(
        probe, "deleted", lambda rows: probe.delete([one.id for one in rows]), right="no deleted row"
    )


def added_again(probe: Probe) -> Iterator[Finding]:
    """See whether a deleted row that is added again for another reader has its old label."""
    probe.offers("delete")

    def change(rows: list[Document]) -> None:
        probe.delete([one.id for one in rows])
        probe.plant([Document(one.id, one.text, frozenset({probe.officer})) for one in rows])

    yield from _changed(probe, "added again", change, right="no row whose new label is for another reader")


def files(probe: Probe) -> Iterator[Finding]:
    """See whether text or vectors of deleted documents are still in the target's files."""
    paths = probe.offers("files")
    probe.offers("delete")
    rows = probe.reports(probe.word(), 20, probe.reader)
    kept = probe.reports(probe.word(), 20, probe.reader)
    probe.plant(rows + kept)
    before = _standing(rows, probe.done("files", paths))
    if not before:
        raise NotTried("neither text nor vectors were found in the files before the deletion")
    probe.delete([one.id for one in rows])
    after = _standing(rows, probe.done("files", paths))
    for what in sorted(set(after.values())):
        places = [place for place, found in after.items() if found == what]
        came = f"{what} in {len(places)} files, such as {places[0].name}"
        yield Finding(
            "files", "bytes of 20 deleted documents in all files", came, "nothing of them in any file"
        )


def _standing(rows: Iterable[Document], paths: Iterable[object]) -> dict[Path, str]:
    """Return the files that hold a text or a vector of documents, and which of the two."""
    marks: dict[bytes, str] = {}
    for one in rows:
        word = one.text.rstrip(".").split()[-1]  # a word that stands in no other document
        vector = vector_of(one.text)
        marks |= {word.encode(encoding): "text" for encoding in ("utf-8", "utf-16-le")}
        marks |= {vector.astype(kind).tobytes()[:32]: "vectors" for kind in ("<f4", ">f4", "<f8")}
    found = {}
    for path in (Path(str(one)) for one in paths):
        try:
            content = path.read_bytes()
        except FileNotFoundError:  # the target may remove files at any time
            continue
        for mark, what in marks.items():
            if mark in content:
                found[path] = what
                break
    return found
