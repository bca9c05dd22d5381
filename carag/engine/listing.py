"""Look into a store under a session and on record: list documents, show one, read its passages.

A document of which the session may use no passage does not exist here. Pages follow the order of ids, and each begins
after an id, so that a store that changes between two pages shows nothing twice, and leaves out nothing that it held
throughout. What a page shows is on record with proofs, as for a retrieval.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

from carag.audit import Models, Outcome, RecordKind
from carag.engine.follow_ups import LISTED
from carag.engine.recorder import Finding, proven
from carag.engine.results import Retrieval
from carag.errors import InvalidArgument
from carag.limits import check_id, quoted
from carag.policy import EVERYWHERE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from carag.engine.recorder import Egress
    from carag.engine.requests import Requests
    from carag.policy import Decision, Session
    from carag.retrieval import Evidence
    from carag.retrieval.listing.admitted import Admitted


MOST_LISTED: Final = 400
"""Greatest number of documents or passages of a page, as many as one record can hold."""
_MENDED: Final = {
    "FACTS_DISAGREE": "correct the source that is wrong",
    "MISSING_AUDIENCE": "state `allow` or `deny` with the document",
    "MISSING_FACT": "state the fact with the document, in its front matter or sidecar file",
    "MISSPELT_FACT": "correct the name of the fact",
    "UNKNOWN_VALUE": "state a value that the profile knows",
}
_INGEST_AGAIN: Final = "then ingest the document again"


@dataclass(frozen=True, slots=True)
class DocumentView:
    """A document as a session may see it."""

    id: str
    version: int
    """1, 2, ... in order of arrival."""
    stated: dict[str, Any] = field(repr=False)
    """What the document states about itself: id, language and metadata; of a filing form, company, dates."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A document that no session can find, because it could not be labelled."""

    id: str
    code: str
    why: str = field(repr=False)
    mend: str
    """What to do about it."""


@dataclass(frozen=True, slots=True, repr=False)
class Listing(Retrieval):
    """A page of a listing, with its receipt; empty with outcome ``DECLINE`` if there is nothing to show.

    ``passages`` are those of the document, or the first that the session may use of each of the ``documents``.
    """

    documents: tuple[DocumentView, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    after: str | None = None
    """What the next page begins after; None on the last page."""

    def _repr_html_(self) -> str | None:
        from carag.audit.receipts.card import card

        shown = self.documents or self.quarantined
        if not shown:
            return Retrieval._repr_html_(self)
        columns = [one.name for one in fields(shown[0])]
        rows = [[getattr(one, name) for name in columns] for one in shown]
        facts = {"why": self.why, "record": self.receipt.seq, "after": self.after}
        return card("Listing", facts, columns=columns, rows=rows)

    def to_json(self) -> dict[str, Any]:
        """Return what ``carag documents list --json`` and ``quarantine list --json`` print, without texts."""
        return {
            "outcome": self.outcome.value,
            "why": self.why,
            "documents": [asdict(one) for one in self.documents or self.quarantined],
            "passages": [one.chunk_id for one in self.passages],
            "after": self.after,
            "record": self.receipt.seq,
        }


class Listings:
    """The listings of a store; an engine has them as ``engine.listings``."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._collection = requests.collection

    def documents(
        self,
        session: Session,
        *,
        where: Mapping[str, Any] | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> Listing:
        """List documents of which the session may use a passage, by id.

        ``after`` is the ``after`` of the page before; ``limit`` is 1 to 400; ``where`` is as in
        :meth:`carag.Engine.ask`. Raises InvalidArgument if one of them is not valid.

        Examples
        --------
        >>> import tempfile, carag
        >>> memos = [carag.Document(id=f"memo/{n}", text="Branches report.", bits=()) for n in range(3)]
        >>> reader = carag.Session(role="public", purpose="read")
        >>> with carag.Engine.open(tempfile.mkdtemp(), profile="generic", embedder="wordllama") as engine:
        ...     _ = engine.add(memos)
        ...     page = engine.listings.documents(reader, limit=2)
        ...     rest = engine.listings.documents(reader, after=page.after)
        >>> [one.id for one in page.documents], [one.id for one in rest.documents], rest.after
        (['memo/0', 'memo/1'], ['memo/2'], None)
        """
        _check_page(after, limit)
        text = f"documents{_page(after, limit)}"
        return self._listing(text, session, where, lambda admitted: admitted.page(after, limit))

    def document(self, id_: str, session: Session) -> Listing:
        """Show one document, as a listing of one; the answer for a hidden document is that for an absent one."""
        check_id("id of a document", id_)
        return self._listing(f"document {id_}", session, None, lambda admitted: (admitted.named(id_), None))

    def passages(
        self, id_: str, session: Session, *, after: str | None = None, limit: int = MOST_LISTED
    ) -> Listing:
        """Read the passages of a document that the session may use, in its order, from the one after ``after``."""
        check_id("id of a document", id_)
        _check_page(after, limit)

        def choose(admitted: Admitted) -> tuple[Evidence, str | None]:
            chunks = [one for number in admitted.named(id_) for one in admitted.whole(number)]
            later = [one for one in chunks if after is None or one.chunk_id > after]
            shown = later[:limit]
            return admitted.evidence(shown, ""), shown[-1].chunk_id if len(later) > limit else None

        return self._on_record(f"passages of {id_}{_page(after, limit)}", session, None, choose)

    def quarantine(self, session: Session, *, after: str | None = None, limit: int = 100) -> Listing:
        """List the documents in quarantine, by id, with the reason and what to mend.

        Only a session that may know what is hidden is told; any other is refused, with ``EXISTENCE_NOT_GRANTED``.
        """
        _check_page(after, limit)
        found: list[tuple[str, str, str]] = []

        def work(_: Egress, decision: Decision) -> Finding:
            if not decision.may_know_existence:
                text = "this role and purpose may not know what is hidden; ask as one that may"
                return Finding(Outcome.REFUSE, "EXISTENCE_NOT_GRANTED", text)
            found.extend(self._collection.store.documents.quarantined(after or "", limit + 1))
            if not found:
                return Finding(Outcome.DECLINE, LISTED[1])
            return Finding(Outcome.ANSWER, LISTED[0], json.dumps(found[:limit], ensure_ascii=False))

        text = f"quarantine{_page(after, limit)}"
        told, receipt, _ = self._requests.on_record(
            RecordKind.EXPLAIN, text, session, Models(), work, names=True
        )
        shown = tuple(Quarantined(*one, mend=_mend(one[1])) for one in found[:limit])
        last = shown[-1].id if len(found) > limit else None
        return Listing(told.outcome, told.why, receipt, quarantined=shown, after=last)

    def _listing(
        self,
        text: str,
        session: Session,
        where: Mapping[str, Any] | None,
        choose: Callable[[Admitted], tuple[list[int], str | None]],
    ) -> Listing:
        stated: dict[str, dict[str, Any]] = {}

        def work(admitted: Admitted) -> tuple[Evidence, str | None]:
            numbers, after = choose(admitted)
            stated.update((one["id"], one) for _, one in self._collection.store.documents.fields(numbers))
            return admitted.evidence(admitted.firsts(numbers), ""), after

        found = self._on_record(text, session, where, work)
        views = [
            DocumentView(one.document_id, one.version, stated[one.document_id]) for one in found.passages
        ]
        return replace(found, documents=tuple(views))

    def _on_record(
        self,
        text: str,
        session: Session,
        where: Mapping[str, Any] | None,
        choose: Callable[[Admitted], tuple[Evidence, str | None]],
    ) -> Listing:
        from carag.retrieval.listing.admitted import Scope  # loaded when something is listed

        nexts: Sequence[str | None] = ()

        def work(egress: Egress, decision: Decision) -> Finding:
            nonlocal nexts
            request = egress.request
            scope = Scope(
                self._collection,
                self._requests.retriever,
                decision,
                request.where or EVERYWHERE,
                request.inquiry,
            )
            with scope.admitted() as admitted:
                evidence, after = choose(admitted)
            self._requests.check_groups(request, decision)
            nexts = (after,)
            searched = proven(self._collection.state, request, evidence)
            is_empty = not evidence.passages
            outcome = Outcome.DECLINE if is_empty else Outcome.ANSWER
            return Finding(outcome, LISTED[is_empty], searched=searched)

        found, receipt, _ = self._requests.on_record(
            RecordKind.RETRIEVE, text, session, Models(), work, where, names=True
        )
        return Listing(
            found.outcome,
            found.why,
            receipt,
            found.passages,
            found.withheld,
            after=nexts[0] if nexts else None,
        )


def _check_page(after: str | None, limit: int) -> None:
    if after is not None:
        check_id("after", after)
    if type(limit) is not int or not 1 <= limit <= MOST_LISTED:
        raise InvalidArgument(
            f"limit is {quoted(limit)}; want 1 to {MOST_LISTED}, as many as one record can hold"
        )


def _page(after: str | None, limit: int) -> str:
    """Say which page is asked for, for the record, which commits to it."""
    return f", {limit} at most" + ("" if after is None else f", after {after}")


def _mend(code: str) -> str:
    return f"{_MENDED.get(code, 'correct what is said here')}, {_INGEST_AGAIN}"
