"""Take one request from its token to its answer: verify, admit, read, narrow, ask the engine, write.

A session comes from the token alone. The request chooses one of the cells that the token grants, and may narrow it.
All of this runs in a thread, so that neither a signature nor a disk holds up other requests, and whatever it ends
with is told by its code.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from carag.audit.tlog.tiles import Tile
from carag.engine.tokens import JwtVerifier
from carag.errors import AuditUnavailable, InvalidArgument, type_and_place
from carag.service.admission import Admission
from carag.service.console.desk import Desk
from carag.service.grants import REQUIRED, Grants, GrantVerifier, record_grants
from carag.service.jwks import JwksKeys, fetched
from carag.service.metrics import Metrics
from carag.service.problems import Problem, problem_of
from carag.service.proofs import own_receipt, tile
from carag.service.requests import AskBody, ExplainBody, RetrieveBody, parsed
from carag.service.wire import answer_json, explanation_json, retrieval_json
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from carag.engine import Engine
    from carag.engine.tokens import KeySource
    from carag.policy import Session
    from carag.service.admission import Person
    from carag.service.grants import Duty
    from carag.service.requests import Narrow
    from carag.service.settings import ServiceSettings

__all__ = ["Service", "encoded"]

_logger = logger(__name__)
_Asked = TypeVar("_Asked", AskBody, RetrieveBody, ExplainBody)
_Result = TypeVar("_Result")


class Service:
    """What every request needs: one engine, the issuer's keys, the grants and the limits.

    Making one puts the hash of the grants on record.

    Parameters
    ----------
    engine : Engine
        Stays the caller's to close, after :meth:`close`.
    home : Path
        The engine's store.
    settings : ServiceSettings
    keys : KeySource, optional
        The issuer's keys; by default those of ``settings.jwks``.

    Raises
    ------
    InvalidArgument
        If the grants cannot be read or name a cell that the store's policy has not.
    AuditUnavailable
        If the grants cannot be put on record.
    """

    def __init__(
        self, engine: Engine, home: Path, settings: ServiceSettings, *, keys: KeySource | None = None
    ) -> None:
        from pathlib import Path

        self.engine, self.home, self.settings = engine, home, settings
        self.keys = keys or JwksKeys(fetched(settings.jwks), settings.algorithms)
        self._tokens = JwtVerifier(
            issuer=settings.issuer,
            audience=settings.audience,
            keys=self.keys,
            leeway=settings.leeway,
            required=REQUIRED,
        )
        table = engine.profile.table
        self.grants = Grants.read(Path(settings.grants), table)
        self.metrics = Metrics()
        self.admission = Admission(
            rate=settings.rate,
            burst=settings.burst,
            most=settings.concurrency,
            most_each=settings.concurrency_each,
        )
        self.is_draining = False
        self.is_writable = True
        """Whether the last record that was to be written was."""
        record_grants(engine.log, table, self.grants)
        self._threads = ThreadPoolExecutor(settings.concurrency, thread_name_prefix="carag-service")

    def stop(self) -> None:
        """Take no more requests, so that whoever serves this ends; from any thread, or from a signal."""
        self.is_draining = True

    def close(self) -> None:
        """Wait for the requests in work; later ones are refused."""
        self.stop()
        self._threads.shutdown(wait=True)

    async def done(self, work: Callable[[], _Result]) -> _Result:
        """Do the work of one request in a thread, within the limits of number and time.

        Raises
        ------
        Problem
            Whatever it ends with, if not with a result.
        """
        if self.is_draining:
            raise Problem("DRAINING", retry_after=5)
        self.admission.enter_all()
        try:
            future = asyncio.get_running_loop().run_in_executor(self._threads, self._told, work)
        except RuntimeError:  # closed meanwhile
            self.admission.leave_all()
            raise Problem("DRAINING", retry_after=5) from None
        try:
            # The thread goes on to its record: what a person was about to get is known even if they did not.
            found = await asyncio.wait_for(asyncio.shield(future), self.settings.seconds)
        except TimeoutError:
            raise Problem("TIME_LIMIT") from None
        if isinstance(found, Problem):
            raise found
        return found

    def ask(self, token: str, body: bytes) -> dict[str, Any]:
        """Answer a question."""

        def answer(asked: AskBody, session: Session) -> dict[str, Any]:
            return answer_json(self.engine.ask(asked.question, session, where=asked.where))

        return self._narrowed(token, AskBody, body, answer)

    def retrieve(self, token: str, body: bytes) -> dict[str, Any]:
        """Return the best passages."""

        def retrieve(asked: RetrieveBody, session: Session) -> dict[str, Any]:
            if asked.k > self.settings.max_k:
                raise Problem("INVALID_REQUEST", at=["k"])
            return retrieval_json(self.engine.retrieve(asked.question, session, asked.k, where=asked.where))

        return self._narrowed(token, RetrieveBody, body, retrieve)

    def explain(self, token: str, body: bytes) -> dict[str, Any]:
        """Say why a passage may or may not be used."""

        def explain(asked: ExplainBody, session: Session) -> dict[str, Any]:
            return explanation_json(self.engine.explain(asked.chunk_id, session))

        return self._narrowed(token, ExplainBody, body, explain)

    def receipt(self, token: str, seq: int) -> bytes:
        """Make a receipt of the asker's own again."""
        return self._verified(token, lambda _, session: own_receipt(self.engine.log, seq, session))

    def policy(self, token: str) -> dict[str, Any]:
        """Tell the cells that a token grants; nothing of it depends on the corpus."""

        def policy(verifier: GrantVerifier, _: Session) -> dict[str, Any]:
            table = self.engine.profile.table
            return {
                "profile": table.vocabulary.profile,
                "table": table.sha256,
                "grants": self.grants.digest.hex(),
                "cells": [
                    {
                        "role": cell.role,
                        "purpose": cell.purpose,
                        "regulation": cell.regulation,
                        "may_know_existence": cell.may_know_existence,
                        "past": cell.past,
                    }
                    for cell in table.cells
                    if (cell.role, cell.purpose) in verifier.granted
                ],
            }

        return self._verified(token, policy)

    def console(self, token: str, asked: bytes) -> dict[str, Any]:
        """Read what a page of the console shows its viewer (:mod:`carag.service.console.desk`)."""
        desk = Desk(self.engine, self.home, self.grants, self.gauges)
        return self._verified(token, partial(desk.answer, token, asked), duties_do=True)

    def checkpoint(self, token: str) -> bytes:
        """Return the newest signed checkpoint."""
        log = self.engine.log
        if self.settings.public_log:
            return log.checkpoint().encode()
        return self._verified(token, lambda *_: log.checkpoint().encode())

    def tile(self, token: str, path: str) -> bytes:
        """Return a tile of the log's tree; to auditors also a bundle of its records, which say who asked when."""
        asked = Tile.parse(path)
        found = partial(tile, self.home, self.engine.vkey, asked)
        if asked is not None and asked.is_entries:
            return self._on_duty(token, "audit", lambda _: found())
        if self.settings.public_log:
            return found()
        return self._verified(token, lambda *_: found())

    def gauges(self) -> dict[str, float]:
        """Return what is as it is now, for the metrics."""
        found: dict[str, float] = {"working": self.admission.working, "records": self.engine.log.size}
        found |= {"ready": not self.is_draining and self.is_writable}
        if isinstance(self.keys, JwksKeys):
            found["key_fetches"] = self.keys.fetches
        return found

    def _told(self, work: Callable[[], _Result]) -> _Result | Problem:
        """Do the work; return what it ends with as a problem, for an error keeps the frames that hold passages."""
        try:
            found = work()
        except Exception as error:  # noqa: BLE001 - told by its code, and named by type and place in our own log
            problem = problem_of(error)
            if isinstance(error, AuditUnavailable):
                self.is_writable = False
            if problem.status == 500:
                _logger.error("%s: %s", problem.code, type_and_place(error))  # noqa: TRY400 - a traceback quotes it
            return Problem(problem.code, at=problem.at, retry_after=problem.retry_after)
        else:
            return found
        finally:
            self.admission.leave_all()

    def _on_duty(self, token: str, duty: Duty, work: Callable[[Person], _Result]) -> _Result:
        """Verify a token that grants a duty, and do what its person has it for; no session comes of it."""
        verifier = GrantVerifier(self._tokens, self.grants, self.settings.groups, duty=duty)
        session = self.engine.session(token, verifier)
        person = (session.issuer or "", session.subject or "")
        self.admission.enter(person)
        try:
            return work(person)
        finally:
            self.admission.leave(person)

    def _verified(
        self, token: str, work: Callable[[GrantVerifier, Session], _Result], *, duties_do: bool = False
    ) -> _Result:
        """Verify a token, which is on record if it is refused, and do what its person may do now."""
        verifier = GrantVerifier(
            self._tokens, self.grants, self.settings.groups, is_any=True, duties_do=duties_do
        )
        session = self.engine.session(token, verifier)
        person = (session.issuer or "", session.subject or "")
        self.admission.enter(person)
        try:
            return work(verifier, session)
        finally:
            self.admission.leave(person)

    def _narrowed(
        self,
        token: str,
        schema: type[_Asked],
        body: bytes,
        work: Callable[[_Asked, Session], dict[str, Any]],
    ) -> dict[str, Any]:
        def narrowed(verifier: GrantVerifier, _: Session) -> dict[str, Any]:
            asked = parsed(schema, body)  # after the token: strangers' bodies are not read
            verifier.chosen, verifier.subject, verifier.is_any = asked.cell, asked.subject, False
            session = self._narrow(self.engine.session(token, verifier), asked.narrow)
            found = work(asked, session)
            self.is_writable = True
            return found

        return self._verified(token, narrowed)

    def _narrow(self, session: Session, by: Narrow) -> Session:
        try:
            return by.applied(session, self.engine.profile.table.vocabulary.flags)
        except InvalidArgument:
            raise Problem("INVALID_REQUEST", at=["narrow"]) from None


def encoded(found: dict[str, Any]) -> bytes:
    """Write a result as JSON."""
    return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
