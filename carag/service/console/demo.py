"""Try the console without an issuer: made-up people, whose tokens this process signs with a temporary key."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.asymmetric import ec

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.service.settings import ServiceSettings, is_loopback

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes


_ISSUER: Final = "urn:carag:demo"
_KEY: Final = "demo"
_SECONDS: Final = 3600
"""Lifetime of a token."""
_GRANTS: Final = """\
schema = 1

[[grant]]
group = "analysts"
cells = ["buy_side/invest", "public/public_qa"]

[[grant]]
group = "officers"
cells = ["compliance/surveil", "public/public_qa"]

[[grant]]
group = "auditors"
duties = ["audit"]
"""


@dataclass(frozen=True, slots=True)
class Person:
    """A made-up person."""

    subject: str
    name: str
    groups: tuple[str, ...]


PEOPLE: Final = {
    "ana": Person("ana@bank.example", "Ana, analyst", ("analysts",)),
    "olga": Person("olga@bank.example", "Olga, compliance officer", ("officers",)),
    "eve": Person("eve@audit.example", "Eve, auditor", ("auditors",)),
}
"""By the value that the login page sends; for a store with EDGAR's profile."""


class Demo:
    """An issuer of tokens for :data:`PEOPLE`, and the source of its one key; lets anyone choose who to be.

    Pass it as the ``keys`` of a :class:`carag.service.service.Service`, with the settings that :meth:`settings` makes;
    any address but loopback is refused.
    """

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())

    def get(self, kid: str, /) -> tuple[str, PublicKeyTypes] | None:
        """Return the key that verifies its tokens (:class:`carag.engine.tokens.KeySource`)."""
        return ("ES256", self._key.public_key()) if kid == _KEY else None

    def token(self, name: str) -> str:
        """Sign a token for one of the people; raise InvalidArgument for an unknown name."""
        import jwt

        if name not in PEOPLE:
            raise InvalidArgument(f"the demo has no person {quoted(name)}; want one of {', '.join(PEOPLE)}")
        now, person = int(time.time()), PEOPLE[name]
        claims = {"iss": _ISSUER, "aud": _ISSUER, "sub": person.subject, "iat": now, "exp": now + _SECONDS}
        return jwt.encode(
            {**claims, "groups": list(person.groups)}, self._key, algorithm="ES256", headers={"kid": _KEY}
        )

    def settings(self, directory: Path, *, port: int = 0) -> ServiceSettings:
        """Write the grants file into a directory; return settings for a service that only this machine can reach."""
        grants = directory / "grants.toml"
        grants.write_text(_GRANTS, "utf-8")
        return ServiceSettings(
            issuer=_ISSUER,
            audience=_ISSUER,
            jwks=str(directory / "no-such-file"),  # never read: the keys are passed to the service
            algorithms=["ES256"],
            grants=str(grants),
            port=port,
            operations_port=0,
        )

    def check(self, settings: ServiceSettings) -> None:
        """Raise InvalidArgument if the service listens on another address than loopback, or behind a proxy."""
        if not is_loopback(settings.listen) or settings.behind_proxy or settings.issuer != _ISSUER:
            raise InvalidArgument(
                "a demo lets anyone choose who to be; use the settings that it makes: 127.0.0.1 and no proxy"
            )
