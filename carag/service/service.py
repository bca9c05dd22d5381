"""Take one request from its token to its answer: verify, admit, read, narrow, ask the engine, write."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from carag.audit.anchors import Standing
from carag.audit.tlog.tiles import Tile
from carag.engine.recorder import Denials
from carag.engine.tokens import JwtVerifier
from carag.errors import AuditUnavailable, Refused, type_and_place
from carag.service import telemetry
from carag.service.admission import Admission, Strangers
from carag.service.console.desk import Desk
from carag.service.glasses import Glasses
from carag.service.grants import REQUIRED, Grants, GrantsFile, GrantVerifier, record_grants
from carag.service.jobs import Jobs
from carag.service.jwks import JwksKeys, fetched
from carag.service.metrics import INTERFACE, Metrics
from carag.service.problems import Problem, problem_of
from carag.service.proofs import own_receipt, tile
from carag.service.requests import AskBody, BreakGlassBody, ExplainBody, IngestBody, RetrieveBody, parsed
from carag.service.wire import CellBody, PolicyBody, answer_json, encoded, explanation_json, retrieval_json
from carag.service.writes import WRITES, Replies, done, second_person
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.engine import Engine
    from carag.engine.tokens import KeySource
    from carag.policy import Session
    from carag.service.admission import Person
    from carag.service.grants import Cell, Duty
    from carag.service.release import Asker
    from carag.service.requests import SessionBody, WriteBody
    from carag.service.settings import ServiceSettings
    from carag.service.writes import Write


_logger = logger(__name__)
_MAX_DIGITS: Final = 16
"""Digits of a record's number: as many as the greatest integer in a receipt has."""
_OPERATIONS: Final = frozenset((*INTERFACE, "may_write", "console"))
"""What a request may name: methods of :class:`Service`, and writes."""
_GLASS_REFUSED: Final = frozenset(("NOT_BREAK_GLASS", "APPROVER_REQUIRED", "BREAK_GLASS_UNKNOWN"))
"""Codes that are recorded like those of refused tokens."""
_Asked = TypeVar("_Asked", AskBody, RetrieveBody, ExplainBody)
_Result = TypeVar("_Result")


class Service:
    """Everything a request needs: one engine, the issuer's keys, the grants and the limits.

    - ``engine``: the caller closes it, after :meth:`close`.
    - ``home``: the engine's store.
    - ``keys``: the issuer's keys; by default those of ``settings.jwks``.
    """

    def __init__(
        self, engine: Engine, home: Path, settings: ServiceSettings, *, keys: KeySource | None = None
    ) -> None:
        self.engine, self.home, self.settings = engine, home, settings
        self.keys = keys or JwksKeys(fetched(settings.jwks), settings.algorithms)
        self._tokens = JwtVerifier(
            issuer=settings.issuer,
            audience=settings.audience,
            keys=self.keys,
            leeway=settings.leeway,
            longest=settings.longest_token,
            required=REQUIRED,
            principals=settings.principals or {},
        )
        self.metrics = Metrics(lambda: [(cell.role, cell.purpose) for cell in engine.profile.table.cells])
        self.admission = Admission(
            rate=settings.rate,
            burst=settings.burst,
            most=settings.concurrency,
            most_each=settings.concurrency_each,
        )
        self.strangers = Strangers(settings.refused_rate)
        self._unchecked = Denials(engine.log, engine.log.now)
        self.slots = settings.slot_seconds(*engine.requests.paces)
        """Seconds of each operation's slot; None: responses do not wait."""
        if self.slots is not None:
            engine.requests.keep_to_admissible_rows()
        self.is_draining = False
        self.is_writable = True
        """Whether the last attempt to write a record succeeded."""
        self._granting = GrantsFile(Path(settings.grants), engine)
        self._glasses = Glasses(engine.log.now)
        self._replies = Replies()
        self.jobs = Jobs(engine, home, most=settings.max_jobs)
        self._threads = ThreadPoolExecutor(settings.concurrency, thread_name_prefix="carag-service")

    @property
    def grants(self) -> Grants:
        """The current grants; errors as for :meth:`carag.service.grants.GrantsFile.now`."""
        return self._granting.now()

    def stop(self) -> None:
        """Accept no more requests, which ends the serving loop; may be called from any thread or signal handler."""
        self.is_draining = True

    def close(self) -> None:
        """Wait for the requests in progress; later ones are refused."""
        self.stop()
        self._threads.shutdown(wait=True)
        self.jobs.close()
        try:
            self._count_unchecked()
            self._unchecked.flush()
        except AuditUnavailable as error:
            _logger.error("tokens that were not checked are not on record: %s", type_and_place(error))  # noqa: TRY400

    async def answered(self, operation: str, asker: Asker, asked: bytes = b"") -> bytes:
        """Answer a request for one of :data:`_OPERATIONS` in a thread; errors as for :meth:`done`."""
        self._check_stranger(operation, asker.token)
        return await self.done(partial(self._operation(operation), asker, asked))

    async def done(self, work: Callable[[], _Result]) -> _Result:
        """Do the work of one request in a thread, within the limits of number and time; raise errors as Problems."""
        if self.is_draining:
            raise Problem("DRAINING", retry_after=5)
        self.admission.enter_all()
        try:
            told = partial(copy_context().run, self._outcome, work)  # within the request's span
            future = asyncio.get_running_loop().run_in_executor(self._threads, told)
        except RuntimeError:  # closed meanwhile
            self.admission.leave_all()
            raise Problem("DRAINING", retry_after=5) from None
        try:
            # The thread runs on until its record is written, so that an answer that came too late is recorded too.
            found = await asyncio.wait_for(asyncio.shield(future), self.settings.seconds)
        except TimeoutError:
            raise Problem("TIME_LIMIT") from None
        if isinstance(found, Problem):
            raise found
        return found

    def ask(self, asker: Asker, body: bytes) -> bytes:
        """Answer a question."""

        def answer(asked: AskBody, session: Session) -> dict[str, Any]:
            return answer_json(self.engine.ask(asked.question, session, where=asked.where))

        return self._narrowed(asker, AskBody, body, answer)

    def retrieve(self, asker: Asker, body: bytes) -> bytes:
        """Return the best passages."""

        def retrieve(asked: RetrieveBody, session: Session) -> dict[str, Any]:
            if asked.k > self.settings.max_k:
                wanted = {"k": f"Input should be less than or equal to {self.settings.max_k}"}
                raise Problem("INVALID_REQUEST", at=["k"], wanted=wanted)
            return retrieval_json(self.engine.retrieve(asked.question, session, asked.k, where=asked.where))

        return self._narrowed(asker, RetrieveBody, body, retrieve)

    def explain(self, asker: Asker, body: bytes) -> bytes:
        """Explain why a passage may or may not be used."""

        def explain(asked: ExplainBody, session: Session) -> dict[str, Any]:
            return explanation_json(self.engine.explain(asked.chunk_id, session))

        return self._narrowed(asker, ExplainBody, body, explain)

    def break_glass(self, asker: Asker, body: bytes) -> bytes:
        """Open a cell for a time, for a written reason; later requests of the same person name what is returned."""

        def opened(verifier: GrantVerifier, _: Session) -> bytes:
            asked = parsed(BreakGlassBody, body)
            session = self._chosen(asker, verifier, asked)
            granted = self.engine.profile.table.get(session.role, session.purpose)
            terms = None if granted is None else granted.break_glass
            asked.check(None if terms is None else terms.minutes)
            cell = session.role, session.purpose
            approver = None if asked.approver is None else self._approver(asked.approver, chosen=cell)
            broken = partial(
                self.engine.break_glass,
                session,
                purpose=session.purpose,
                reason=asked.reason,
                approver=approver,
                minutes=asked.minutes,
            )
            found = self._glasses.keep(asker.person or ("", ""), broken)
            self.is_writable = True
            return found.model_dump_json().encode()

        return self._verified(asker, opened)

    def may_write(self, asker: Asker, operation: bytes) -> bytes:
        """Check that a token grants the duty that a write needs."""
        write = WRITES.get(operation.decode())
        return self._on_duty(asker, "operate" if write is None else write.duty, lambda *_: b"")

    def ingest(self, asker: Asker, asked: bytes) -> bytes:
        """Accept documents as a job; ``asked`` is the idempotency key, a line feed and the body."""
        key, _, body = asked.partition(b"\n")

        def ingest(person: Person, verifier: GrantVerifier) -> bytes:
            if self.engine.profile.vocabulary.reader == "edgar":
                raise Problem("FILINGS_ONLY")
            asked = parsed(IngestBody, body).checked()
            self._check_subject(asker, verifier, asked)
            job, _ = self.jobs.accept(person, key.decode(), asked)
            return encoded(job.to_json())

        return self._on_duty(asker, "operate", ingest)

    def job(self, asker: Asker, id_: bytes) -> bytes:
        """Return the state of one of the person's own jobs."""
        return self._on_duty(
            asker, "operate", lambda person, _: encoded(self.jobs.job(person, id_.decode()).to_json())
        )

    def receipt(self, asker: Asker, seq: bytes) -> bytes:
        """Return the receipt of one of the caller's own records, by its number in decimal digits."""
        if not seq.isdigit() or len(seq) > _MAX_DIGITS:
            raise Problem("NOT_FOUND")
        return self._verified(asker, lambda _, session: own_receipt(self.engine.log, int(seq), session))

    def policy(self, asker: Asker, _: bytes = b"") -> bytes:
        """Return the cells that a token grants, and the slots; none of it depends on the corpus."""

        def policy(verifier: GrantVerifier, _: Session) -> bytes:
            table = self.engine.profile.table
            slots = self.slots or {}
            milliseconds = {name: round(one * 1000) for name, one in slots.items()} or None
            granted = [cell for cell in table.cells if (cell.role, cell.purpose) in verifier.granted]
            found = PolicyBody(
                profile=table.vocabulary.profile,
                table=table.sha256,
                grants=self.grants.digest.hex(),
                slots=milliseconds,
                cells=[CellBody.model_validate(cell, from_attributes=True) for cell in granted],
            )
            return found.model_dump_json().encode()

        return self._verified(asker, policy)

    def console(self, asker: Asker, asked: bytes) -> bytes:
        """Read what a page of the console shows its viewer (:mod:`carag.service.console.desk`)."""
        desk = Desk(self.engine, self.home, self.grants, self.gauges)

        def answer(verifier: GrantVerifier, session: Session) -> bytes:
            found = desk.answer(asker.token, asked, verifier, session)
            if "explained" in found and verifier.chosen is not None:
                self.metrics.answer(*verifier.chosen, found["explained"]["outcome"])
            return encoded(found)

        return self._verified(asker, answer, duties_do=True)

    def checkpoint(self, asker: Asker, _: bytes = b"") -> bytes:
        """Return the newest signed checkpoint."""
        log = self.engine.log
        if self.settings.public_log:
            return log.checkpoint().encode()
        return self._verified(asker, lambda *_: log.checkpoint().encode())

    def tile(self, asker: Asker, path: bytes) -> bytes:
        """Return a tile of the log's tree; for auditors also a bundle of its records, which say who asked when."""
        asked = Tile.parse(path.decode("utf-8", "replace"))
        found = partial(tile, self.home, self.engine.vkey, asked)
        if asked is not None and asked.is_entries:
            return self._on_duty(asker, "audit", lambda *_: found())
        if self.settings.public_log:
            return found()
        return self._verified(asker, lambda *_: found())

    def gauges(self) -> dict[str, float]:
        """Return the gauges for the metrics."""
        exposure = self.engine.anchoring.exposure()
        found: dict[str, float] = {"working": self.admission.working, "records": exposure.size}
        found["jobs"] = self.jobs.waiting
        found |= {"ready": not self.unready(), "log_writable": self.is_writable}
        found |= {"unanchored_records": exposure.records, "unanchored_seconds": exposure.seconds}
        if isinstance(self.keys, JwksKeys):
            found["key_fetches"] = self.keys.fetches
        return found

    def try_log(self) -> None:
        """After a record could not be written, try again by recording the grants."""
        if not self.is_writable:
            try:
                record_grants(self.engine.log, self.engine.profile.table, self.grants)
            except AuditUnavailable as error:
                _logger.info("the log still cannot be written: %s", type_and_place(error))
            else:
                self.is_writable = True

    def unready(self) -> list[str]:
        """Return the codes that say why the service is not ready; empty if it is ready."""
        standing = self.engine.anchoring.exposure().standing
        said = {
            "DRAINING": self.is_draining,
            "LOG_UNWRITABLE": not self.is_writable,
            "LOG_DAMAGED": self.engine.log.damage() is not None,
            "ANCHOR_WINDOW": standing is Standing.EXCEEDED,
            "ANCHOR_CONTRADICTS": standing is Standing.CONTRADICTED,
        }
        codes = [code for code, is_so in said.items() if is_so]
        try:
            self._granting.now()
        except Problem as problem:
            codes.append(problem.code)
        except AuditUnavailable:
            codes.append("LOG_UNWRITABLE")
        return list(dict.fromkeys(codes))

    def _outcome(self, work: Callable[[], _Result]) -> _Result | Problem:
        """Do the work; return an error as a new Problem, because the error itself keeps frames that hold passages."""
        try:
            found = work()
        except Exception as error:  # noqa: BLE001 - answered by its code, logged by type and place
            problem = problem_of(error)
            if isinstance(error, AuditUnavailable):
                self.is_writable = False
            if problem.status == 500:
                place = type_and_place(error)
                said = {"event": "ERROR", "code": problem.code, "error": place}
                _logger.error("%s: %s", problem.code, place, extra=said)  # noqa: TRY400 - a traceback quotes it
            return Problem(
                problem.code, at=problem.at, wanted=problem.wanted, retry_after=problem.retry_after
            )
        else:
            return found
        finally:
            self.admission.leave_all()

    def _operation(self, name: str) -> Callable[[Asker, bytes], bytes]:
        if name not in _OPERATIONS:
            raise Problem("NOT_FOUND")
        if name in WRITES:
            return partial(self._write, WRITES[name])
        found: Callable[[Asker, bytes], bytes] = getattr(self, name)
        return found

    def _check_stranger(self, operation: str, token: str) -> None:
        if not (self.settings.public_log and operation in ("checkpoint", "tile")):
            self.strangers.check(token)

    def _count_unchecked(self) -> None:
        """Record how many tokens were turned away unchecked; even in a flood other requests get here soon."""
        if count := self.strangers.take_unchecked():
            issuer, audience = self.settings.issuer, self.settings.audience
            self._unchecked.add("TOKEN_UNCHECKED", issuer=issuer, audience=audience, count=count)

    def _on_duty(self, asker: Asker, duty: Duty, work: Callable[[Person, GrantVerifier], _Result]) -> _Result:
        """Verify that a token grants a duty, and do the duty's work; no session is involved."""
        verifier = GrantVerifier(self._tokens, self.grants, self.settings.groups, duty=duty)
        return self._admitted(asker, verifier, lambda _: work(asker.person or ("", ""), verifier))

    def _check_subject(self, asker: Asker, verifier: GrantVerifier, asked: WriteBody) -> None:
        verifier.subject = asked.subject
        self.engine.session(asker.token, verifier)

    def _write(self, write: Write, asker: Asker, stated: bytes) -> bytes:
        """Do a write; ``stated`` is the idempotency key, a line feed and the body."""
        key, _, body = stated.partition(b"\n")

        def work(person: Person, verifier: GrantVerifier) -> bytes:
            asker.may_know = True  # the duty tells which documents there are, so the response need not wait
            asked = parsed(write.takes, body)
            self._check_subject(asker, verifier, asked)

            def approver(token: str) -> str:
                return self._approver(token, duty=write.duty).subject or ""

            who = second_person(self.engine, asked, person[1], approver)
            do = partial(done, self.engine, write, asked, who)
            found = self._replies.once(person, key.decode(), asked, do) if write.has_key else do()
            self.is_writable = True
            return found

        return self._on_duty(asker, write.duty, work)

    def _verified(
        self, asker: Asker, work: Callable[[GrantVerifier, Session], _Result], *, duties_do: bool = False
    ) -> _Result:
        verifier = GrantVerifier(
            self._tokens, self.grants, self.settings.groups, is_any=True, duties_do=duties_do
        )
        return self._admitted(asker, verifier, lambda session: work(verifier, session))

    def _admitted(self, asker: Asker, verifier: GrantVerifier, work: Callable[[Session], _Result]) -> _Result:
        """Verify a token, record it if it is refused, and work within the limits of its person."""
        self._count_unchecked()
        try:
            session = self.engine.session(asker.token, verifier)
        except Refused as refusal:
            if refusal.code != "TOKEN_KEYS_UNAVAILABLE":  # then it is unknown whether the token is good
                self.strangers.refused(asker.token)
            raise
        self.strangers.accepted(asker.token)
        asker.person = person = (session.issuer or "", session.subject or "")
        asker.role = session.role
        self.admission.enter(person)
        try:
            return work(session)
        except (Problem, Refused) as refused:
            if refused.code in _GLASS_REFUSED:
                self._unchecked.add(
                    refused.code, issuer=self.settings.issuer, audience=self.settings.audience
                )
            raise
        finally:
            self.admission.leave(person)

    def _chosen(self, asker: Asker, verifier: GrantVerifier, asked: SessionBody) -> Session:
        """Return the token's session in the cell that a request chooses."""
        verifier.chosen, verifier.subject, verifier.is_any = asked.cell, asked.subject, False
        session = self.engine.session(asker.token, verifier)
        asker.role = session.role
        return session

    def _approver(self, token: str, *, chosen: Cell | None = None, duty: Duty | None = None) -> Session:
        """Return the session of a second person's token, which must grant the same; recorded if it is refused."""
        verifier = GrantVerifier(self._tokens, self.grants, self.settings.groups, chosen=chosen, duty=duty)
        try:
            return self.engine.session(token, verifier)
        except Refused as refusal:
            problem = problem_of(refusal)
            if problem.status == 503:
                raise
            # Only the first token's codes are answered as they are: they would have the asker log in once more.
            raise Problem("APPROVER_REQUIRED", at=["approver"], wanted={"approver": problem.title}) from None

    def _may_know(self, session: Session) -> bool:
        cell = self.engine.profile.table.get(session.role, session.purpose)
        return cell is not None and cell.may_know_existence

    def _narrowed(
        self,
        asker: Asker,
        schema: type[_Asked],
        body: bytes,
        work: Callable[[_Asked, Session], dict[str, Any]],
    ) -> bytes:
        def narrowed(verifier: GrantVerifier, _: Session) -> bytes:
            asked = parsed(schema, body)  # after the token, so that no stranger's body is parsed
            session = self._chosen(asker, verifier, asked)
            if asked.glass is not None:
                session = self._glasses.under(asked.glass, asker.person or ("", ""), session)
            asker.may_know = self._may_know(session)
            vocabulary = self.engine.profile.table.vocabulary
            asked.check(vocabulary.metadata)
            found = work(asked, asked.narrow.applied(session, vocabulary.flags))
            # The answer may follow a policy that was put in force meanwhile, and must not leave earlier than that
            # policy allows.
            asker.may_know = asker.may_know and self._may_know(session)
            self.is_writable = True
            self.metrics.answer(session.role, session.purpose, found["outcome"])
            telemetry.describe(found, self.engine.profile.table, getattr(asked, "k", None))
            return encoded(found)

        return self._verified(asker, narrowed)
