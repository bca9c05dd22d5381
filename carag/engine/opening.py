"""Open what a store directory holds, in the order that keeps it consistent: log, anchors, collection."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from carag.audit import AuditLog
from carag.audit.anchors import Anchoring
from carag.engine.collection import Collection
from carag.errors import CorruptFile, InvalidArgument
from carag.retrieval import own_reranker, reranker_by_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike
    from pathlib import Path

    from carag.audit.anchors import Anchor, Window
    from carag.policy import Profile
    from carag.retrieval import Reranker

__all__ = ["Opened", "opened", "reranker_of"]


class Opened(NamedTuple):
    """What a store directory holds, open."""

    log: AuditLog
    anchoring: Anchoring
    collection: Collection


@contextmanager
def opened(
    home: Path,
    *,
    create: bool,
    profile: str | PathLike[str] | Profile | None,
    embedder: object | None,
    clock: Callable[[], int],
    anchors: Sequence[Anchor],
    window: Window | None,
    retain: str,
    not_before: str | None,
    scrub_every: float | None,
    accept_policy: bool,
    accept_lost_values: bool,
) -> Iterator[Opened]:
    """Open a store directory until the context ends; parameters and errors as for :meth:`carag.Engine.open`.

    ``clock`` returns microseconds since 1970.
    """
    database = home / "corpus.db"
    if not create and not database.exists():
        raise InvalidArgument(f"{home} holds no store; make one with: carag ingest PATH --store {home}")
    if database.exists() and not (home / "vkey").exists():
        raise CorruptFile(
            f"{home} has documents and no audit log: its history is gone; restore audit.db, audit.key and "
            "vkey from a backup, or ingest into a new store"
        )
    with ExitStack() as resources:
        # The log's lock is the store's: one writer, and a store without a writable log stays shut.
        log = resources.enter_context(
            AuditLog.open(
                home, clock=clock, retain=retain, not_before=not_before, accept_lost_values=accept_lost_values
            )
        )
        if scrub_every is not None:
            log.scrub_in_background(every=scrub_every)
        anchoring = resources.enter_context(
            Anchoring(log, anchors, home / "anchors", window=window, clock=clock)
        )
        collection = resources.enter_context(
            Collection.open(
                home,
                create=create,
                embedder=embedder,
                clock=clock,
                profile=profile,
                accept_policy=accept_policy,
            )
        )
        yield Opened(log, anchoring, collection)


def reranker_of(given: object) -> Reranker | None:
    """Return the reranker that a name or an object of the caller's own stands for; none for None."""
    if isinstance(given, str):
        return reranker_by_name(given)
    return None if given is None else own_reranker(given)
