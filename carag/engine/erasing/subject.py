"""Report where a person stands: in documents, in their lists, in groups, in records and answers (GDPR Art. 15, 17)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from carag.audit.operations.disclosure import disclose_report
from carag.engine.erasing.mentions import mentioning
from carag.policy import Audience
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.audit import AuditLog
    from carag.engine.erasing.mentions import Mentions
    from carag.store.store import CorpusStore


class MentioningDocument(NamedTuple):
    """A document in which a name stands, in any version."""

    id: str
    where: tuple[str, ...]
    """``facts``, ``text``, or both; metadata and the id count as facts."""


class Listing(NamedTuple):
    """A principal on a document's list, in any version."""

    id: str
    list: str
    """``allow`` or ``deny``."""
    principal: str


class Membership(NamedTuple):
    """A member of a group."""

    group: str
    member: str
    now: bool
    """Whether the group still has the member, by its last import."""


class MentioningRecord(NamedTuple):
    """A record that commits to values in which a name stands."""

    record: int
    kind: str
    fields: tuple[str, ...]
    """``answer`` is among them if it is the answer that names the person."""


class SubjectReport(NamedTuple):
    """Where a person stands."""

    names: tuple[str, ...]
    record: int
    """The record of this report."""
    documents: tuple[MentioningDocument, ...]
    lists: tuple[Listing, ...]
    groups: tuple[Membership, ...]
    records: tuple[MentioningRecord, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what ``carag subject report --json`` prints."""
        plain = self._asdict()
        for part in ("documents", "lists", "groups", "records"):
            plain[part] = [one._asdict() for one in plain[part]]
        return plain

    def page(self) -> str:
        """Return the report as a page in Markdown."""
        return "\n".join(_page(self)) + "\n"


def report(
    store: CorpusStore, log: AuditLog, names: Mentions, *, role: str, actor: str, why: str
) -> SubjectReport:
    """See :meth:`carag.engine.erasing.documents.DocumentErasures.report`."""
    text = json.dumps(names.names, ensure_ascii=False)
    record = disclose_report(log, text, role=role, actor=actor, why=why).seq
    found = mentioning(store, names)
    return SubjectReport(
        names=names.names,
        record=record,
        documents=tuple(MentioningDocument(one, tuple(sorted(found[one]))) for one in sorted(found)),
        lists=tuple(dict.fromkeys(_listings(store, names))),
        groups=tuple(
            Membership(*one) for one in store.groups.memberships() if names.are(one[0]) or names.are(one[1])
        ),
        records=tuple(_records(log, names, before=record)),
    )


def _listings(store: CorpusStore, names: Mentions) -> Iterator[Listing]:
    for id_, stated in store.documents.audiences():
        audience = Audience.read(stated)
        for name, listed in (("allow", audience.allow or ()), ("deny", audience.deny)):
            yield from (Listing(id_, name, one) for one in listed if names.are(one))


def _records(log: AuditLog, names: Mentions, *, before: int) -> Iterator[MentioningRecord]:
    for seq in range(before):
        opened = log.private.openings(seq)
        fields = tuple(sorted(name for name, one in opened.items() if names.stand_in_sealed(one.value)))
        if fields:
            yield MentioningRecord(seq, log.record(seq).kind.value, fields)


def _page(said: SubjectReport) -> Iterator[str]:
    yield f"# Where {', '.join(map(_code, said.names))} stands"
    yield ""
    yield f"Record {said.record} of the audit log is about this report."
    yield from _part("Documents", [f"{_code(one.id)}: {', '.join(one.where)}" for one in said.documents])
    yield from _part(
        "Lists of documents", [f"{_code(one.id)}: {one.list} {_code(one.principal)}" for one in said.lists]
    )
    yield from _part(
        "Groups",
        [
            f"{_code(one.group)}: {_code(one.member)}, {'now' if one.now else 'in the past'}"
            for one in said.groups
        ],
    )
    yield from _part(
        "Records and answers",
        [f"record {one.record} ({one.kind}): {', '.join(one.fields)}" for one in said.records],
    )


def _part(title: str, lines: Iterable[str]) -> Iterator[str]:
    listed = [f"- {one}" for one in lines]
    yield from ("", f"## {title}: {len(listed)}", "", *(listed or ["Nothing was found."]))


def _code(text: str) -> str:
    """Show a text by itself; what would end its place on the page does not stay."""
    return "`" + visible_line(text).replace("`", "'") + "`"
