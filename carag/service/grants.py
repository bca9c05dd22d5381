"""Map the groups named in a token to cells (role and purpose), by a reviewed file whose hash is recorded."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from carag.audit import PolicyChange
from carag.audit.tlog.encoding import b64url
from carag.errors import InvalidArgument, Refused
from carag.limits import quoted, shown
from carag.policy.toml_lines import Toml
from carag.service.problems import Problem
from carag.visible import logger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from carag.audit import AuditLog
    from carag.engine import Engine
    from carag.engine.tokens import JwtVerifier
    from carag.policy import PolicyTable


_logger = logger(__name__)

REQUIRED: Final = ("exp", "iat", "iss", "aud", "sub")
"""Claims that every token must carry, in addition to the claim with the groups."""
_MAX_BYTES: Final = 1 << 20
"""Largest size of a grants file."""
_PAGE: Final = "docs/how-to/run-the-service.md"

Cell = tuple[str, str]
"""Role and purpose."""
Duty = Literal["admin", "audit", "operate"]
"""What a group may do apart from asking: ``audit`` reads the log and reports on persons, ``operate`` brings and removes
documents, ``admin`` erases and holds them and states who is in which group."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Grant(_Strict):
    group: str = Field(min_length=1, max_length=200)
    cells: list[str] = []
    duties: list[Duty] = []

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.cells or self.duties):
            raise ValueError("grants nothing; add cells, duties or both")
        return self


class _Document(_Strict):
    schema_: Literal[1] = Field(alias="schema")
    grant: list[_Grant] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Grants:
    """Which cells and duties each group grants.

    - ``cells``, ``duties``: by group.
    - ``digest``: SHA-256 of the file.
    """

    cells: Mapping[str, tuple[Cell, ...]]
    duties: Mapping[str, tuple[Duty, ...]]
    digest: bytes

    @classmethod
    def read(cls, path: Path, table: PolicyTable) -> Self:
        """Read a grants file."""
        return cls.parse(_bytes(path), path, table)

    @classmethod
    def parse(cls, data: bytes, path: Path, table: PolicyTable) -> Self:
        """Read the bytes of a grants file; errors as for :meth:`read`."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _unreadable(path, error) from error
        if len(data) > _MAX_BYTES:
            raise InvalidArgument(
                f"{path} is longer than {_MAX_BYTES} bytes; check that it is the grants file"
            )
        toml = Toml(shown(str(path)), text, _PAGE)
        known = {f"{cell.role}/{cell.purpose}": (cell.role, cell.purpose) for cell in table.cells}
        cells: dict[str, tuple[Cell, ...]] = {}
        duties: dict[str, tuple[Duty, ...]] = {}
        for number, one in enumerate(toml.read(_Document).grant):
            with toml.at("grant", number, "group"):
                if one.group in cells:
                    raise InvalidArgument(f"{quoted(one.group)} has a grant already; merge the two")
            for place, name in enumerate(one.cells):
                if name not in known:
                    with toml.at("grant", number, "cells", place):
                        raise InvalidArgument(
                            f"{quoted(name)} is not a cell of the store's policy; `carag policy show` lists them"
                        )
            cells[one.group] = tuple(known[name] for name in one.cells)
            duties[one.group] = tuple(one.duties)
        return cls(cells, duties, hashlib.sha256(data).digest())

    def of(self, groups: object) -> tuple[tuple[Cell, ...], tuple[Duty, ...]]:
        """Return the cells and duties that the groups grant together, each once; unlisted groups grant nothing."""
        if not isinstance(groups, list) or not all(isinstance(one, str) for one in groups):
            raise Refused("TOKEN_CLAIM_INVALID", "the token's groups must be a list of strings")
        cells = dict.fromkeys(cell for group in groups for cell in self.cells.get(group, ()))
        duties = dict.fromkeys(duty for group in groups for duty in self.duties.get(group, ()))
        return tuple(cells), tuple(duties)


@dataclass(slots=True)
class GrantVerifier:
    """Verify one token and turn its groups into the role and purpose of one granted cell.

    - ``claim``: the claim in which a token names its groups.
    - ``chosen``: the cell that the request asks for. Without it the groups must grant exactly one.
    - ``subject``: the person whom the request names; the token must be theirs.
    - ``is_any``: whether any cell will do, because nothing is searched; the first one is taken.
    - ``duty``: the duty that the request needs, in place of a cell.
    - ``duties_do``: with ``is_any``, whether a duty alone suffices, because only what is granted is shown.
    """

    tokens: JwtVerifier
    grants: Grants
    claim: str
    chosen: Cell | None = None
    subject: str | None = None
    is_any: bool = False
    duty: Duty | None = None
    duties_do: bool = False
    granted: tuple[Cell, ...] = field(default=(), init=False)
    """What the verified token grants."""
    duties: tuple[Duty, ...] = field(default=(), init=False)
    """The duties that the token grants."""
    _known: tuple[str, Mapping[str, Any]] | None = field(default=None, init=False, repr=False)
    """A token and its claims, once verified: the request body is read and chooses a cell only afterwards."""

    @property
    def issuer(self) -> str:
        """Whose tokens are accepted."""
        return self.tokens.issuer

    @property
    def audience(self) -> str:
        """For whom tokens must be issued."""
        return self.tokens.audience

    @property
    def expires(self) -> int:
        """Expiry of the verified token in seconds since 1970; 0 before there is one."""
        return 0 if self._known is None else int(self._known[1]["exp"])

    def verify(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token with the chosen cell's role and purpose, in place of any that it states."""
        if not token:
            raise Refused("TOKEN_MISSING", "the request has no bearer token")
        if self._known is None or self._known[0] != token:
            self._known = token, self.tokens.verify(token)
        claims = self._known[1]
        if self.claim not in claims:
            raise Refused("TOKEN_CLAIM_MISSING", "the token names no groups")
        granted, self.duties = self.grants.of(claims[self.claim])
        if self.duty is not None and self.duty not in self.duties:
            raise Refused("TOKEN_DUTY", "the token does not grant this duty")
        if self.subject is not None and claims["sub"] != self.subject:
            raise Refused("TOKEN_SUBJECT", "the token belongs to somebody other than the person named")
        if duty := self.duty or (self.duties[0] if self.duties and self.duties_do and not granted else None):
            return {**claims, "role": f"duty:{duty}", "purpose": f"duty:{duty}"}  # a name that no table has
        if not granted:
            raise Refused("TOKEN_CELL", "the token's groups do not grant any cell here")
        if self.chosen is not None and self.chosen not in granted:
            raise Refused("TOKEN_CELL", "the token does not grant this role and purpose")
        if self.chosen is None and len(granted) > 1 and not self.is_any:
            raise Refused("TOKEN_CELL_UNCLEAR", "the token grants several cells; the request must choose one")
        self.granted = granted
        role, purpose = self.chosen or granted[0]
        return {**claims, "role": role, "purpose": purpose}


class GrantsFile:
    """The grants as the file states them now, so that removing a grant takes effect at once. Thread-safe.

    A change to the file, or to the policy in force, is recorded before anything is granted by it. While the file cannot
    be read or is not valid, nothing is granted: its earlier content may be just what somebody is withdrawing. Raises
    InvalidArgument as :meth:`Grants.read`; AuditUnavailable if the grants cannot be recorded.
    """

    def __init__(self, path: Path, engine: Engine) -> None:
        self._path, self._engine = path, engine
        self._lock = threading.Lock()
        self._is_reported = False
        self._kept, self._table = self._changed(_bytes(path))

    def now(self) -> Grants:
        """Return the grants. Raises Problem ``GRANTS_UNREADABLE``; AuditUnavailable if a change cannot be recorded."""
        with self._lock:
            try:
                data, table = _bytes(self._path), self._engine.profile.table.sha256
                if (hashlib.sha256(data).digest(), table) != (self._kept.digest, self._table):
                    self._kept, self._table = self._changed(data)
            except InvalidArgument as error:
                if not self._is_reported:
                    said = {"event": "ERROR", "code": "GRANTS_UNREADABLE", "error": type(error).__name__}
                    _logger.error("GRANTS_UNREADABLE: nothing is granted until this is mended", extra=said)  # noqa: TRY400
                self._is_reported = True
                raise Problem("GRANTS_UNREADABLE", retry_after=30) from None
            self._is_reported = False
            return self._kept

    def _changed(self, data: bytes) -> tuple[Grants, str]:
        table = self._engine.profile.table
        try:
            changed = Grants.parse(data, self._path, table)
        except InvalidArgument:
            self._engine.keep_up()  # the file may name what another process has put in force
            if table is self._engine.profile.table:
                raise
            table = self._engine.profile.table
            changed = Grants.parse(data, self._path, table)
        record_grants(self._engine.log, table, changed)
        return changed, table.sha256


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InvalidArgument:
    return InvalidArgument(f"cannot read the grants in {path}: {error}; want TOML, see {_PAGE}")


def record_grants(log: AuditLog, table: PolicyTable, grants: Grants) -> int:
    """Record which grants file a service is about to answer by; return the record's number."""
    digest = bytes.fromhex(table.sha256)
    why = f"SERVICE_GRANTS:{b64url(grants.digest)}"
    return log.append(PolicyChange(at=log.now(), table=digest, before=digest, why=why)).seq
