"""Read a trust policy file (``c2sp.org/tlog-policy``): the keys of logs and witnesses, and the quorum of witnesses.

::

    log     <vkey> [<url>]
    witness <name> <vkey> [<url>]
    group   <name> all|any|<k> <name>...
    quorum  <name>|none

A log whose key was rotated has a line for each of its keys. The quorum determines which witnesses must have cosigned
a checkpoint before it counts as confirmed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from carag.audit.anchors._http import check_url
from carag.audit.tlog.keys import WitnessVerifier, parse_witness_key
from carag.audit.tlog.log_verifier import parse_vkeys
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from carag.audit.tlog.note import NoteKey


_NONE: Final = "none"
"""The quorum that needs no witness."""
_MAX_LINES: Final = 1000
"""Most lines of a policy file."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A witness; its name has a meaning only in the policy."""

    name: str
    key: WitnessVerifier
    url: str | None = None


@dataclass(frozen=True, slots=True)
class TrustPolicy:
    """Logs, witnesses, and the quorum among them.

    Parameters
    ----------
    groups : mapping of str to (threshold, members)
    quorum : str
        A witness, a group, or ``"none"``.

    Examples
    --------
    >>> TrustPolicy.parse("quorum none").satisfied_by(())
    True
    """

    logs: tuple[NoteKey, ...]
    witnesses: tuple[Witness, ...]
    quorum: str
    groups: Mapping[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    def satisfied_by(self, cosigned: Collection[str]) -> bool:
        """Tell whether the witnesses with these names form a quorum."""
        return self.quorum == _NONE or self._witnessed(self.quorum, cosigned)

    def keys_of(self, origin: str) -> tuple[NoteKey, ...]:
        """Return the keys of one log."""
        return tuple(key for key in self.logs if key.name == origin)

    @classmethod
    def parse(cls, text: str) -> TrustPolicy:
        """Read a policy.

        Raises
        ------
        InvalidArgument
            If the policy is malformed; the message names the line.
        """
        lines = text.split("\n")
        if len(lines) > _MAX_LINES:
            raise InvalidArgument(f"a policy has at most {_MAX_LINES} lines, got {len(lines)}")
        reader = _Reader()
        for number, line in enumerate(lines, start=1):
            try:
                reader.read(line)
            except InvalidArgument as error:
                raise InvalidArgument(f"line {number} of the policy: {error}") from error
        if reader.quorum is None:
            raise InvalidArgument("a policy has one quorum line; add 'quorum none' to ask for no witness")
        return cls(tuple(reader.logs), tuple(reader.witnesses), reader.quorum, reader.groups)

    def _witnessed(self, name: str, cosigned: Collection[str]) -> bool:
        if name not in self.groups:
            return name in cosigned
        threshold, members = self.groups[name]
        return sum(self._witnessed(member, cosigned) for member in members) >= threshold


class _Reader:
    """Reads a policy line by line; names are defined before use, so groups cannot be circular."""

    def __init__(self) -> None:
        self.logs: list[NoteKey] = []
        self.witnesses: list[Witness] = []
        self.groups: dict[str, tuple[int, tuple[str, ...]]] = {}
        self.quorum: str | None = None
        self._names: set[str] = set()
        self._grouped: set[str] = set()

    def read(self, line: str) -> None:
        if any(character < " " and character != "\t" for character in line) or "\x7f" in line:
            raise InvalidArgument("it has control characters other than tab and newline")
        words = [word for word in line.replace("\t", " ").split(" ") if word]
        if not words or words[0].startswith("#"):
            return
        match words:
            case ["log", vkey, *url] if len(url) <= 1:
                self._log(vkey)
            case ["witness", name, vkey, *url] if len(url) <= 1:
                self._witness(name, vkey, *url)
            case ["group", name, threshold, *members] if members:
                self._group(name, threshold, tuple(members))
            case ["quorum", name]:
                if self.quorum is not None:
                    raise InvalidArgument("there is a second quorum line; want one")
                if name != _NONE:
                    self._known(name)
                self.quorum = name
            case _:
                raise InvalidArgument(f"{line.strip()!r} is not a log, witness, group or quorum line")

    def _log(self, vkey: str) -> None:
        (key,) = parse_vkeys(vkey)
        if any(other.key_id == key.key_id for other in self.logs):
            raise InvalidArgument(f"the log key {vkey} is listed twice")
        self.logs.append(key)

    def _witness(self, name: str, vkey: str, url: str | None = None) -> None:
        key = parse_witness_key(vkey)
        if any(other.key.public == key.public for other in self.witnesses):
            raise InvalidArgument(f"the key of witness {name} is listed twice; one key is one witness")
        self._define(name)
        self.witnesses.append(Witness(name, key, None if url is None else check_url(url)))

    def _group(self, name: str, threshold: str, members: tuple[str, ...]) -> None:
        for member in members:
            self._known(member)
            if member in self._grouped:
                raise InvalidArgument(f"{member} is a member twice; list each witness once")
            self._grouped.add(member)
        count = {"any": 1, "all": len(members)}.get(threshold)
        if count is None:
            plain = threshold.isascii() and threshold.isdecimal() and len(threshold) < 5
            count = int(threshold) if plain and not threshold.startswith("0") else 0
        if not 1 <= count <= len(members):
            raise InvalidArgument(f"a threshold is all, any or 1 to {len(members)}, got {threshold!r}")
        self._define(name)
        self.groups[name] = (count, members)

    def _define(self, name: str) -> None:
        if name in self._names or name == _NONE:
            raise InvalidArgument(f"the name {name} is taken")
        self._names.add(name)

    def _known(self, name: str) -> None:
        if name not in self._names:
            raise InvalidArgument(f"{name} is not defined on a line above")
