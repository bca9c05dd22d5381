"""Break the glass: open a cell for a stated time, for a written reason, on record before anything is found under it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from carag.audit import GlassBroken, SessionSource
from carag.errors import InvalidArgument, Refused, type_and_place
from carag.limits import check_text, quoted
from carag.policy import Session, known_at_microseconds
from carag.policy.session import Glass
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from carag.engine.configuration import InForce
    from carag.engine.directory import Lifetime
    from carag.engine.recorder import Recorder


__all__ = ["BreaksGlass", "Broken"]

_logger = logger(__name__)
MAX_REASON: Final = 1000
"""Greatest length of a reason, in characters."""


@dataclass(frozen=True, slots=True)
class Broken:
    """What the hook is told at once: who broke the glass, and why."""

    subject: str
    approver: str | None
    role: str
    purpose: str
    reason: str
    until: int
    """Microseconds since 1970-01-01T00:00Z."""
    record: int
    """The record's number."""


class BreaksGlass:
    """Opens cells whose ``break_glass`` is stated; call it. ``hook`` is told each time, after the record is durable."""

    def __init__(
        self,
        recorder: Recorder,
        in_force: InForce,
        lifetime: Lifetime,
        hook: Callable[[Broken], None] | None = None,
    ) -> None:
        self._recorder = recorder
        self._in_force = in_force
        self._lifetime = lifetime
        self._hook = hook

    def __call__(
        self,
        session: Session,
        *,
        purpose: str,
        reason: str,
        approver: Session | str | None = None,
        minutes: int | None = None,
    ) -> Session:
        """Return the session in the cell of its role for another purpose, for as long as that cell says.

        Each request under it names the record of this call. A changed copy of the session is not under it.

        Parameters
        ----------
        session : Session
            With a subject, so that the record says who it was.
        purpose : str
            A purpose whose cell for the session's role has ``break_glass``.
        reason : str
            Why; at most 1,000 characters. Recorded as a salted commitment, whose value auditors open.
        approver : Session or str, optional
            A second person, where the cell asks for two: the session of that person's own token, or, if the session
            was not verified by a token, their name as the host states it.
        minutes : int, optional
            For how many minutes, 1 up to what the cell says; by default, as many as it says.

        Raises
        ------
        Refused
            ``NOT_BREAK_GLASS``: the cell does not exist or does not open so. ``APPROVER_REQUIRED``: a second person is
            missing, the same, or not verified although the session is.
        InvalidArgument
            If subject or reason is missing, or too long, or ``minutes`` is more than the cell says.
        AuditUnavailable
            If it cannot be recorded; then nothing opens.
        """
        self._lifetime.check()
        if type(session) is not Session:
            raise InvalidArgument(f"session is a {type(session).__name__}; want a carag.Session")
        if session.subject is None:
            raise InvalidArgument("the session has no subject; say who breaks the glass")
        check_text("reason", reason, MAX_REASON)
        if not reason.strip():
            raise InvalidArgument("reason is empty; write why the glass is broken")
        cell = self._in_force.keep_up().table.get(session.role, purpose)
        if cell is None or cell.break_glass is None:
            raise Refused(
                "NOT_BREAK_GLASS",
                f"{session.role} cannot break the glass for {quoted(purpose)}; its cell does not allow it",
            )
        most = cell.break_glass.minutes
        if minutes is not None and (type(minutes) is not int or not 1 <= minutes <= most):
            raise InvalidArgument(f"minutes is {quoted(minutes)}; want 1 to {most}, for which the cell opens")
        second = _second(session, approver, is_needed=cell.break_glass.two_persons)
        now = self._recorder.clock()
        until = known_at_microseconds(now + timedelta(minutes=minutes or most))
        event = GlassBroken(
            at=known_at_microseconds(now),
            until=until,
            role=cell.role,
            purpose=cell.purpose,
            source=SessionSource(session.source.value),
        )
        secrets = {"subject": session.subject, "reason": reason, "approver": second}
        record = self._recorder.log.append(event, secrets=secrets).seq
        _logger.info("the glass was broken for %s/%s, record %d", cell.role, cell.purpose, record)
        self._tell(Broken(session.subject, second, cell.role, cell.purpose, reason, until, record))
        return session.under(Glass(cell.role, cell.purpose, until, record, cell.sha256))

    def _tell(self, broken: Broken) -> None:
        if self._hook is None:
            return
        try:
            self._hook(broken)
        except Exception as error:  # noqa: BLE001 - the record is durable; a hook that fails must not hide the cell in need
            _logger.error("the hook for record %d failed: %s", broken.record, type_and_place(error))  # noqa: TRY400


def _second(session: Session, approver: Session | str | None, *, is_needed: bool) -> str | None:
    """Return the second person's name; Refused if there must be one and is not."""
    name = approver.subject if isinstance(approver, Session) else approver
    is_proved = isinstance(approver, Session) and approver.source is session.source
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise InvalidArgument(f"approver is {quoted(name)}; want a person's name or session")
    if (name is not None or is_needed) and (
        name is None or name == session.subject or (session.source.value == "verified" and not is_proved)
    ):
        raise Refused(
            "APPROVER_REQUIRED",
            "the second person is missing, the same as the first, or not verified; let another person approve, by a "
            "token of their own if the session has one",
        )
    return name
