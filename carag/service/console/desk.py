"""Read what the pages of the console show. Who may see it is decided here, and the result is plain JSON.

Pages have no access to engine, log or store. Questions and explanations do not come here: they are ordinary requests.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from carag.audit import Outcome, RecordKind, disclose, verify_receipt
from carag.audit.auditor.describe import CODES, NOT_SHOWN, describe_record, instant
from carag.audit.auditor.find import find, proved
from carag.audit.auditor.reader import LogReader
from carag.audit.private.openable import openable
from carag.audit.receipts.receipt import open_envelope
from carag.errors import InvalidArgument
from carag.limits import MAX_LABEL
from carag.policy import NEVER, PolicyTable, bit_names, known_at_microseconds
from carag.policy.diff import compare
from carag.policy.shipped import shipped_bits
from carag.service.console.tree import path_of
from carag.service.problems import Problem
from carag.service.proofs import bare_receipt, own_receipt
from carag.service.requests import Strict, read_json, validated
from carag.service.wire import explanation_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from carag.engine import Engine
    from carag.engine.results import LabelHistory
    from carag.policy import Session
    from carag.service.grants import Grants, GrantVerifier


_LISTED: Final = 50
"""Records on one page."""
_LOOKED_AT: Final = 20_000
"""Records that one page of a search reads; older ones are left to the next page."""
_BRIEFLY: Final = ("record", "logged", "kind", "role", "purpose", "outcome", "code")
_CODE: Final = r"^[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,63}$"
"""The form of codes in records (:class:`carag.audit.Disclosure`)."""
_Word = Annotated[str, Field(min_length=1, max_length=MAX_LABEL)]
_Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]


class Nothing(Strict):
    """For a page without parameters."""


class Records(Strict):
    """Which records are wanted; they are listed newest first."""

    since: _Day | None = None
    until: _Day | None = None
    kind: _Word | None = None
    role: _Word | None = None
    purpose: _Word | None = None
    outcome: _Word | None = None
    code: _Word | None = None
    before: int | None = Field(default=None, ge=0)
    """Only records with a lower number."""


class OneRecord(Strict):
    """One record."""

    record: int = Field(ge=0)


class OpeningAsked(OneRecord):
    """A value that a record commits to, and the purpose of opening it."""

    field: str = Field(pattern=_CODE)
    purpose: str = Field(pattern=_CODE)


class ChunkAsked(Strict):
    """A passage whose labels are wanted, and the cell, if any, whose right is used."""

    chunk_id: _Word
    role: _Word | None = None
    purpose: _Word | None = None


class Talk(Strict):
    """The cell and the conversation whose turns are wanted."""

    role: _Word
    purpose: _Word
    conversation: _Word


class Proposal(Strict):
    """The text of a ``roles.toml`` to compare with the policy table in force."""

    proposed: str | None = Field(default=None, min_length=1)


class Desk:
    """Answer the pages of the console, each for the person of one token.

    - ``home``: the engine's store.
    - ``gauges``: the service's gauges, as for its metrics.
    """

    def __init__(
        self, engine: Engine, home: Path, grants: Grants, gauges: Callable[[], Mapping[str, float]]
    ) -> None:
        self._engine, self._home, self._grants, self._gauges = engine, home, grants, gauges

    def answer(self, token: str, asked: bytes, verifier: GrantVerifier, session: Session) -> dict[str, Any]:
        """Answer one page: ``asked`` is a JSON object with the ``page``'s name and its parameters."""
        said = dict(read_json(asked))
        page = said.pop("page", None)
        if not isinstance(page, str) or page not in PAGES:
            raise Problem("NOT_FOUND")
        schema, work, is_for_auditors = PAGES[page]
        if is_for_auditors:
            self._check_audit(token, verifier)
        viewer = {
            "subject": session.subject,
            "cells": [self._cell(*cell) for cell in verifier.granted],
            "duties": list(verifier.duties),
            "expires": verifier.expires,
        }
        return {"viewer": viewer, **work(self, validated(schema, said), token, verifier, session)}

    def viewer(self, *_: Any) -> dict[str, Any]:
        """Return only who asks and what the token grants."""
        return {"profile": self._engine.profile.name, "origin": self._engine.log.origin}

    def bits(self, *_: Any) -> dict[str, Any]:
        """Return what the bits mean, by which rule, and who could lift it; nothing about the corpus."""
        vocabulary = self._engine.profile.vocabulary
        return {"bits": {name: one.model_dump() for name, one in vocabulary.meanings.items()}}

    def records(self, said: Records, *_: Any) -> dict[str, Any]:
        """List records, newest first, each proved against the signed checkpoint."""
        wanted = {"kind": said.kind, "role": said.role, "purpose": said.purpose}
        wanted |= {"outcome": said.outcome, "why": said.code}
        with self._reader() as reader:
            last = reader.size if said.before is None else min(said.before, reader.size)
            first = max(0, last - _LOOKED_AT)
            found = find(
                reader,
                since=_midnight(said.since),
                until=_midnight(said.until, days=1),
                wanted=wanted,
                among=range(first, last),
            )
            shown = [self._brief(seq, record) for seq, record in islice(found, _LISTED)]
            reader.check_unchanged()
        older = shown[-1]["record"] if len(shown) == _LISTED else first
        return {
            "records": shown,
            "older": older or None,
            "size": reader.size,
            "kinds": [*RecordKind],
            "outcomes": [*Outcome],
            "codes": CODES,
            "roles": self._engine.profile.table.roles,
            "purposes": self._engine.profile.table.purposes,
        }

    def record(
        self, said: OneRecord, token: str, verifier: GrantVerifier, session: Session
    ) -> dict[str, Any]:
        """Show one record with its proof: any record to an auditor, else only the viewer's own."""
        is_auditor = "audit" in verifier.duties
        if is_auditor:
            self._check_audit(token, verifier)
            with self._reader() as reader:
                if said.record >= reader.size:
                    raise Problem("NOT_FOUND")
                record = proved(reader, said.record)
                receipt = None if record is None else bare_receipt(record, reader.prove(said.record))
        else:
            receipt = own_receipt(self._engine.log, said.record, session)
        if receipt is None:  # its kind is from a newer version
            raise Problem("NOT_FOUND")
        checked = verify_receipt(receipt, self._engine.vkey)
        envelope = open_envelope(receipt)
        if checked.record is None:
            raise Problem("STORE_CORRUPT")
        found = {
            "record": describe_record(checked.record, self._meanings),
            "verdict": checked.verdict.value,
            "reason": checked.reason,
            "path": path_of(envelope.record.encode(), envelope.proof),
            "vkey": self._engine.vkey,
            "receipt": receipt.decode(),
            "not_shown": NOT_SHOWN,
            "codes": CODES,
        }
        if is_auditor:
            found["commits_to"] = openable(self._home, said.record, checked.record.commitments)
        return found

    def open(
        self, said: OpeningAsked, token: str, verifier: GrantVerifier, session: Session
    ) -> dict[str, Any]:
        """Open a value that a record commits to; who opened it and why is recorded first."""
        if said.record >= self._engine.log.size or session.subject is None:
            raise Problem("NOT_FOUND")
        opened = disclose(
            self._engine.log,
            said.record,
            role="auditor",
            actor=session.subject,
            why=said.purpose,
            fields=(said.field,),
        )
        values = {name: opening.value for name, opening in opened.items()}
        return {
            "opened": values,
            "purpose": said.purpose,
            **self.record(said, token, verifier, session),
        }

    def turns(self, said: Talk, token: str, verifier: GrantVerifier, _: Session) -> dict[str, Any]:
        """Return the viewer's own questions in one conversation and cell, and what became of each; never an answer."""
        verifier.chosen, verifier.is_any = (said.role, said.purpose), False
        session = self._engine.session(token, verifier).narrow(conversation=said.conversation)
        found = self._engine.requests.turns(session)
        return {"turns": [one._asdict() | {"outcome": one.outcome.value} for one in found]}

    def history(self, said: ChunkAsked, token: str, verifier: GrantVerifier, _: Session) -> dict[str, Any]:
        """Return all labels of a passage on both time axes, to auditors and to cells that may know them.

        Auditors are also told who could see its document, and a cell that may use it now, whether its session could.
        """
        cell = self._engine.profile.table.get(said.role or "", said.purpose or "")
        is_granted = cell is not None and (cell.role, cell.purpose) in verifier.granted
        is_known = (
            is_granted and cell is not None and cell.may_know_existence and cell.past == "as_of+known_at"
        )
        is_auditor = "audit" in verifier.duties
        explained = None
        if cell is not None and is_known:
            verifier.chosen, verifier.is_any = (cell.role, cell.purpose), False
            session = self._engine.session(token, verifier)
            explained = self._engine.explain(said.chunk_id, session)
        if is_auditor or not is_known:
            self._check_audit(token, verifier)
        found = self._engine.contents.label_history(said.chunk_id)
        told = {} if explained is None else {"explained": explanation_json(explained)}
        if found is None:
            return {"history": None, **told}
        who: list[dict[str, Any]] | None = None
        if is_auditor:
            who = [{"allow": one.audience.allow, "deny": one.audience.deny} for one in found.audiences]
        elif explained is not None and explained.why == "ADMISSIBLE":
            opened = self._engine.contents.opened_to(session, (one.audience for one in found.audiences))
            who = [{"through": one} for one in opened]
        return {"history": self._history(found, who), **told}

    def policy(self, said: Proposal, token: str, verifier: GrantVerifier, _: Session) -> dict[str, Any]:
        """Return who may use what for which purpose; for auditors, also what a proposed table would change."""
        if said.proposed is not None:
            self._check_audit(token, verifier)
        profile = self._engine.profile
        table, vocabulary = profile.table, profile.vocabulary
        found: dict[str, Any] = {
            "profile": profile.name,
            "table": table.sha256,
            "grants": self._grants.digest.hex(),
            "bits": [
                {"name": bit.name, **vocabulary.meanings[str(bit.name)].model_dump(exclude={"name"})}
                for bit in vocabulary.flags
            ],
            "cells": [self._cell(cell.role, cell.purpose) for cell in table.cells],
            "text": profile.texts[1] if said.proposed is None else said.proposed,
        }
        if said.proposed is not None:
            try:
                changes = compare(table, PolicyTable.from_toml(said.proposed, vocabulary))
            except InvalidArgument as error:  # the message quotes only the proposal, to its author
                return {**found, "mistake": str(error)}
            found["changes"] = [change.to_json() for change in changes]
        return found

    def health(self, *_: Any) -> dict[str, Any]:
        """Return the state of log, anchors, labels and service."""
        engine, exposure, counts = (
            self._engine,
            self._engine.anchoring.exposure(),
            self._engine.contents.counts(),
        )
        with self._reader() as reader:
            newest = describe_record(record) if (record := proved(reader, reader.size - 1)) else {}
            head = {"size": reader.size, "checkpoint": reader.checkpoint.to_text()}
        gauges = self._gauges()
        return {
            "log": {**head, "origin": engine.log.origin, "vkey": engine.vkey, "newest": newest.get("logged")},
            "anchors": {
                "standing": exposure.standing.value,
                "anchored": exposure.anchored,
                "exposed": exposure.records,
                "seconds": round(exposure.seconds),
                "confirmed": None if exposure.confirmed_at is None else instant(exposure.confirmed_at),
                "failures": [list(failure) for failure in exposure.failures],
            },
            "scrub": engine.log.damage(),
            "labels": {
                "documents": counts.filings,
                "passages": counts.chunks,
                "facts_alone": counts.metadata_only,
                "quarantined": dict(counts.quarantined),
            },
            "service": {"ready": bool(gauges["ready"]), "working": int(gauges["working"])},
            "profile": engine.profile.name,
            "table": engine.profile.table.sha256,
            "grants": self._grants.digest.hex(),
        }

    def _check_audit(self, token: str, verifier: GrantVerifier) -> None:
        """Refuse, and record, a viewer without the duty to audit."""
        verifier.duty = "audit"
        self._engine.session(token, verifier)

    def _reader(self) -> LogReader:
        return LogReader(self._home, vkey=self._engine.vkey)

    def _meanings(self, table: str) -> Mapping[str, str] | None:
        profile = self._engine.profile
        if table in profile.table.hashes:
            return {name: one.document for name, one in profile.vocabulary.meanings.items()}
        return shipped_bits(table)

    def _brief(self, seq: int, record: Any) -> dict[str, Any]:
        if record is None:
            return {"record": seq, "kind": "a kind that this version cannot read"}
        said = describe_record(record, self._meanings)
        return {name: said[name] for name in _BRIEFLY if name in said} | {"passages": len(record.hits)}

    def _cell(self, role: str, purpose: str) -> dict[str, Any]:
        cell = self._engine.profile.table.get(role, purpose)
        if cell is None:
            raise Problem("NOT_FOUND")
        flags = self._engine.profile.vocabulary.flags
        return {
            "role": role,
            "purpose": purpose,
            "regulation": cell.regulation,
            "may_know_existence": cell.may_know_existence,
            "past": cell.past,
            "allow_list": cell.allow_list,
            "break_glass": None if cell.break_glass is None else cell.break_glass.model_dump(),
            "personal_data": cell.personal_data,
            "masks": [
                {
                    "when": pair.when,
                    "required": bit_names(mask.required, flags),
                    "forbidden": bit_names(mask.forbidden, flags),
                }
                for pair, mask in zip(cell.masks, cell.compiled, strict=True)
            ],
        }

    def _history(self, found: LabelHistory, who: list[dict[str, Any]] | None) -> dict[str, Any]:
        filing, vocabulary = found.filing, self._engine.profile.vocabulary
        stated = {bit: (field, rule) for bit, field, rule in filing.causes["bits"]}
        names = {name for label in found.labels for name in bit_names(label.word, vocabulary.flags)}
        return {
            "chunk_id": found.chunk_id,
            "document": found.document,
            "of": {
                "id": filing.document_id,
                "version": filing.version,
                **{name: value for name, value in filing.stated.items() if value},
            },
            "public_at_source": filing.public_at_source,
            "labels": [
                {
                    "word": label.word,
                    "bits": bit_names(label.word, vocabulary.flags),
                    **_times(label),
                    "causes": [list(cause) for cause in label.causes],
                }
                for label in found.labels
            ],
            "audiences": None
            if who is None
            else [
                {"version": one.version, **_times(one), **told}
                for one, told in zip(found.audiences, who, strict=True)
            ],
            "bits": [
                {
                    "name": bit.name,
                    "document": vocabulary.meanings[str(bit.name)].document,
                    "regulation": vocabulary.meanings[str(bit.name)].regulation,
                    "field": stated.get(str(bit.name), (None, None))[0],
                    "rule": stated.get(str(bit.name), (None, None))[1],
                }
                for bit in vocabulary.flags
                if bit.name in names
            ],
        }


def _times(one: Any) -> dict[str, int | None]:
    return {
        "valid_from": one.valid_from,
        "valid_to": None if one.valid_to == NEVER else one.valid_to,
        "known_from": one.known_from,
        "known_to": one.known_to,
    }


PAGES: Final[dict[str, tuple[type[Strict], Callable[..., dict[str, Any]], bool]]] = {
    "viewer": (Nothing, Desk.viewer, False),
    "bits": (Nothing, Desk.bits, False),
    "records": (Records, Desk.records, True),
    "record": (OneRecord, Desk.record, False),
    "open": (OpeningAsked, Desk.open, True),
    "turns": (Talk, Desk.turns, False),
    "history": (ChunkAsked, Desk.history, False),
    "policy": (Proposal, Desk.policy, False),
    "health": (Nothing, Desk.health, True),
}
"""For each page its parameters, its method, and whether it needs the duty to audit."""


def _midnight(day: str | None, *, days: int = 0) -> int | None:
    if day is None:
        return None
    try:
        moment = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=days)
    except (ValueError, OverflowError):
        raise Problem("INVALID_REQUEST", at=["since" if not days else "until"]) from None
    return known_at_microseconds(moment)
