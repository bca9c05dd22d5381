"""Read the table ``[service]`` of a settings file: whose tokens count, where to listen, and the limits."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from carag.errors import InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_ALGORITHMS: Final = ("RS256", "PS256", "ES256", "ES384", "EdDSA")
"""The same as :data:`carag.engine.tokens.ALGORITHMS`, without importing it; a test compares them."""


_KIND: Final = re.compile("[a-z][a-z_]{0,31}")
"""The kind of a principal."""
_PACES: Final[dict[str, dict[str, int]]] = {
    "retrieve": {"quick": 25, "local": 250, "remote": 1000},
    "ask": {"quick": 50, "local": 250, "remote": 1000},
}
"""Milliseconds of a slot by the pace of the models that search, or search and answer."""
_Milliseconds = Annotated[int, Field(ge=1, le=60_000)]


class SlotSettings(BaseModel):
    """The table ``[service.slots]``: milliseconds in which nearly every response is ready."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    ask: _Milliseconds | None = None
    retrieve: _Milliseconds | None = None
    explain: _Milliseconds = 25
    receipts: _Milliseconds = 25
    policy: _Milliseconds = 25
    other: _Milliseconds = 25


class ServiceSettings(BaseModel):
    """The table ``[service]``; ``docs/reference/configuration.md`` describes every key."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    issuer: str = Field(min_length=1, max_length=200)
    audience: str = Field(min_length=1, max_length=200)
    jwks: str = Field(min_length=1)
    algorithms: list[str] = Field(min_length=1)
    grants: str = Field(min_length=1)
    groups: str = Field(default="groups", min_length=1)
    principals: dict[str, str] | None = Field(default=None, max_length=8)
    leeway: int = Field(default=30, ge=0, le=60)
    longest_token: int = Field(default=86_400, ge=60, le=31_622_400)
    listen: str = "127.0.0.1"
    port: int = Field(default=8321, ge=0, le=65535)
    operations_listen: str = "127.0.0.1"
    operations_port: int = Field(default=8322, ge=0, le=65535)
    certificate: str | None = Field(default=None, min_length=1)
    behind_proxy: bool = False
    public_log: bool = False
    max_body: int = Field(default=64 << 10, ge=1 << 10, le=1 << 20)
    max_ingest: int = Field(default=8 << 20, ge=1 << 10, le=64 << 20)
    max_jobs: int = Field(default=16, ge=1, le=1000)
    max_k: int = Field(default=50, ge=1, le=400)
    rate: int = Field(default=10, ge=1, le=10_000)
    burst: int = Field(default=20, ge=1, le=10_000)
    refused_rate: int = Field(default=20, ge=1, le=10_000)
    concurrency: int = Field(default=16, ge=1, le=256)
    concurrency_each: int = Field(default=4, ge=1, le=256)
    connections_each: int | None = Field(default=None, ge=1, le=512)
    seconds: int = Field(default=60, ge=1, le=3600)
    drain_seconds: int = Field(default=10, ge=0, le=600)
    log: Literal["json", "text"] = "json"
    slots: SlotSettings | None = SlotSettings()
    """None if off."""

    @model_validator(mode="before")
    @classmethod
    def _one_process(cls, value: object) -> object:
        if isinstance(value, dict) and "workers" in value:
            raise ValueError(
                "workers is no longer a setting; remove it, and to serve more requests let several services share one "
                "store (docs/how-to/run-the-service.md)"
            )
        return value

    @field_validator("algorithms")
    @classmethod
    def _asymmetric(cls, value: list[str]) -> list[str]:
        for one in value:
            if one not in _ALGORITHMS:
                raise ValueError(f"is {quoted(one)}; want one or more of {', '.join(_ALGORITHMS)}")
        return value

    @field_validator("principals")
    @classmethod
    def _kinds(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        for claim, kind in (value or {}).items():
            if not claim or not _KIND.fullmatch(kind):
                raise ValueError(
                    f'maps {quoted(claim)} to {quoted(kind)}; want a claim and a kind, as in groups = "group"'
                )
        return value

    @field_validator("jwks")
    @classmethod
    def _safe(cls, value: str) -> str:
        """Allow plain HTTP only on this machine: anyone who can answer for the issuer can sign any token."""
        if "://" in value:
            parts = urlsplit(value)
            is_near = parts.scheme == "http" and is_loopback(parts.hostname or "")
            if not parts.hostname or not (parts.scheme == "https" or is_near):
                raise ValueError(f"is {quoted(value)}; want an https:// address, or the path of a file")
        return value

    @field_validator("slots", mode="before")
    @classmethod
    def _on_or_off(cls, value: object) -> object:
        if value == "off":
            return None
        if isinstance(value, dict | SlotSettings):
            return value
        raise ValueError(f'is {quoted(value)}; want "off", or a table [service.slots] of milliseconds')

    @field_validator("listen", "operations_listen")
    @classmethod
    def _address(cls, value: str) -> str:
        if value != "localhost":
            try:
                ipaddress.ip_address(value)
            except ValueError:
                raise ValueError(f"is {quoted(value)}; want an IP address such as 127.0.0.1") from None
        return value

    @model_validator(mode="after")
    def _private(self) -> Self:
        if not is_loopback(self.listen) and self.certificate is None and not self.behind_proxy:
            raise ValueError(
                f"listen is {self.listen}, where tokens and answers would travel unencrypted; set certificate, or "
                "behind_proxy = true if a proxy terminates TLS"
            )
        if not is_loopback(self.operations_listen) and not self.behind_proxy:
            raise ValueError(
                f"operations_listen is {self.operations_listen}, where anyone could read the metrics; want a loopback "
                "address, or behind_proxy = true"
            )
        return self

    @property
    def most_connections_each(self) -> int:
        """Connections per peer; behind a proxy, all connections are the proxy's, which must limit its own clients."""
        return self.connections_each or (512 if self.behind_proxy else 64)

    def slot_seconds(self, searching: str, answering: str) -> dict[str, float] | None:
        """Return the seconds of each operation's slot; None if slots are off.

        - ``searching``, ``answering``: as :attr:`carag.engine.requests.Requests.paces` of the models in use.
        """
        if self.slots is None:
            return None
        by_models = {"retrieve": _PACES["retrieve"][searching], "ask": _PACES["ask"][answering]}
        stated = {name: value for name, value in self.slots.model_dump().items() if value is not None}
        return {name: value / 1000 for name, value in {**by_models, **stated}.items()}

    def with_options(self, given: Mapping[str, int]) -> ServiceSettings:
        """Return the settings, with a command line's values in place of the file's."""
        try:
            slots = self.slots or "off"
            return ServiceSettings.model_validate({**self.model_dump(), "slots": slots, **given})
        except ValidationError as error:
            raise InvalidArgument(error.errors(include_input=False)[0]["msg"]) from None

    def at(self, home: Path) -> ServiceSettings:
        """Return the settings with relative paths resolved against a directory."""
        paths = {"grants": self.grants, "certificate": self.certificate}
        if "://" not in self.jwks:
            paths["jwks"] = self.jwks
        return self.model_copy(
            update={name: str(home / path) for name, path in paths.items() if path is not None}
        )


def is_loopback(host: str) -> bool:
    """Return whether an address is this machine's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
