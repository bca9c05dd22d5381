"""The pins of ``carag trust``: which of the user's own code makes the embedder of which store.

Pins are kept in the user's own directory, never in a store: a store that was handed over has its own signing key and
could sign a pin. A store is identified by the keys of its log. A pin holds the name and fingerprint of the embedder;
if the store has a different embedder, nothing is imported.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from carag.audit._files import WriterLock, write_atomically
from carag.cli._configuration import check_outside_stores, read_toml, toml_text
from carag.errors import CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator


_HEAD: Final = """\
# Written by carag trust: your own code that makes the embedder of a store, which is identified by the keys of its log.
schema = 1
"""


class Pin(BaseModel):
    """The code that makes one store's embedder, with what identified the embedder and the log when it was pinned.

    At least one of the vkeys is still in the store after a rotation.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    factory: str
    name: str
    fingerprint: str
    keys: list[str] = Field(min_length=1)


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    schema_: Literal[1] = Field(alias="schema")
    embedder: list[Pin] = []


class Pins:
    """The pins of this user; InvalidArgument if their file is invalid, lies in a store, or is writable by others."""

    def __init__(self) -> None:
        base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
        # XDG Base Directory Specification: a path that is not absolute is ignored.
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() raises without a home directory
        self.path = (base if base.is_absolute() else home / ".config") / "carag" / "trusted.toml"
        self.all = self._read()

    def of(self, keys: list[str]) -> Pin | None:
        """Return the pin of the store that has one of these keys."""
        return next((pin for pin in self.all if not {*pin.keys}.isdisjoint(keys)), None)

    def add(self, pin: Pin) -> None:
        """Keep a pin durably, in place of any earlier pin of the same store."""
        with self._writing():
            self.all = [one for one in self._read() if {*one.keys}.isdisjoint(pin.keys)] + [pin]

    def remove(self, keys: list[str]) -> None:
        """Remove the pin of a store durably."""
        with self._writing():
            self.all = [one for one in self._read() if {*one.keys}.isdisjoint(keys)]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if not self.path.is_absolute():
            raise InvalidArgument("there is no home directory to keep trust in; set HOME or XDG_CONFIG_HOME")
        check_outside_stores(self.path)
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = WriterLock(self.path.with_suffix(".lock"))
        try:
            yield
            write_atomically(self.path, (_HEAD + "".join(map(_written, self.all))).encode("utf-8"))
        finally:
            lock.release()

    def _read(self) -> list[Pin]:
        if not self.path.is_absolute() or not os.path.lexists(self.path):
            return []
        check_outside_stores(self.path)
        state = self.path.stat()
        if state.st_uid not in (0, os.geteuid()) or state.st_mode & 0o022:
            raise InvalidArgument(
                f"{self.path} is writable by others, and it says which code is run; check its content, then: chmod 600"
            )
        return read_toml(self.path).read(_Document).embedder


def keys_of(store: Path) -> list[str]:
    """Return the vkeys of a store's log; InvalidArgument if they are missing or invalid."""
    from carag.audit.tlog.log_verifier import LogVerifier
    from carag.cli._files import read_text

    text = read_text(store / "vkey", "name a store that carag init or carag ingest has made")
    try:
        return str(LogVerifier.parse(text)).splitlines()
    except CorruptFile as error:
        raise InvalidArgument(f"{store / 'vkey'}: {error}") from error


def trusted_embedder(store: Path) -> Any:
    """Make the embedder that is pinned to a store, or return None.

    Raises InvalidArgument before anything is imported if the store's embedder is not the one pinned, or as
    :func:`carag.engine.made_by_name` does.
    """
    from carag.engine.corpus import embedder_kept_in
    from carag.engine.factories import made_by_name

    if not (store / "vkey").is_file() or (pin := Pins().of(keys_of(store))) is None:
        return None
    kept = embedder_kept_in(store)
    if kept != (pin.name, pin.fingerprint):
        raise InvalidArgument(
            f"{pin.factory} is trusted to make {pin.name!r} for {store}, whose embedder is {kept[0]!r} or has changed; "
            f"withdraw the trust with: carag trust --withdraw --store {store}"
        )
    return made_by_name("embedder", pin.factory, not_in=store)


def _written(pin: Pin) -> str:
    lines = [f"{name} = {toml_text(getattr(pin, name))}" for name in ("factory", "name", "fingerprint")]
    return "\n".join(["\n[[embedder]]", *lines, f"keys = [{', '.join(map(toml_text, pin.keys))}]", ""])
