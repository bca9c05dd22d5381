"""Hold who may see a document, and who asks: principals, opaque texts of a kind and an id."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self, final
from unicodedata import normalize

from carag.errors import InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

EVERYBODY: Final = 0
"""The number of the audience without lists, which every session belongs to."""
MAX_AUDIENCE: Final = (1 << 32) - 2
"""Greatest number of an audience; the next 32-bit number is kept free."""
MAX_PRINCIPALS: Final = 10_000
"""Greatest number of principals on the two lists of an audience together."""
GROUP: Final = "group"
"""The kind of principals that may hold others."""
_PRINCIPAL: Final = re.compile(r"[a-z][a-z_]{0,31}:\S(.{0,254}\S)?")
_SEVERAL: Final = re.compile(r"[\s,;|][\s,;|]*[a-z][a-z_]{0,31}:")
"""Where a second principal begins in one text, such as ``"user:ana, user:bo"``, which would deny it to neither."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class Audience:
    """Who may see a document. ``Audience()`` is everybody.

    Parameters
    ----------
    allow : iterable of str, optional
        The principals of whom a session must have one, such as ``"group:treasury"`` or ``"user:ana"``. None: no list,
        so everybody who is not denied; an empty list: no one.
    deny : iterable of str
        The principals of whom a session must have none. Denying beats allowing.

    Raises
    ------
    InvalidArgument
        If a principal is not of the form ``kind:id``, if one text holds several or two are spellings of one, or if the
        lists are too long.

    Examples
    --------
    >>> audience = Audience(allow=["group:treasury", "user:ana"], deny=["group:contractors"])
    >>> audience.admits({"user:ana"}), audience.admits({"user:ana", "group:contractors"})
    (True, False)
    >>> Audience(allow=["ana"])
    Traceback (most recent call last):
    carag.errors.InvalidArgument: allow holds 'ana'; want a kind and an id, such as 'group:treasury' or 'user:ana'
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()

    def __init__(self, allow: Iterable[str] | None = None, deny: Iterable[str] = ()) -> None:
        allowed = None if allow is None else principals("allow", allow)
        denied = principals("deny", deny)
        both = _checked("allow and deny together", denied.union(allowed or ()))
        if several := sorted(filter(_SEVERAL.search, both)):
            raise InvalidArgument(
                f"{quoted(several[0])} on a list is more than one principal; write each as an item of its own"
            )
        object.__setattr__(self, "allow", None if allowed is None else tuple(sorted(allowed)))
        object.__setattr__(self, "deny", tuple(sorted(denied)))

    def __repr__(self) -> str:
        # The repr shows that a list exists, never its entries: they say who works on what.
        listed = (("allow", self.allow is not None), ("deny", bool(self.deny)))
        return f"Audience({', '.join(f'{name}=<listed>' for name, there in listed if there)})"

    def __bool__(self) -> bool:
        """Whether there is a list at all."""
        return self.allow is not None or bool(self.deny)

    @property
    def named(self) -> tuple[str, ...]:
        """The principals of both lists."""
        return (*(self.allow or ()), *self.deny)

    @property
    def text(self) -> str:
        """Both lists as canonical JSON."""
        return json.dumps(
            {"allow": self.allow, "deny": self.deny},
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        )

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the audience that :attr:`text` describes; ValueError if it describes none."""
        stated = json.loads(text)
        if not isinstance(stated, dict) or stated.keys() != {"allow", "deny"}:
            raise ValueError("an audience has the lists allow and deny, and nothing else")
        return cls(**stated)

    def admits(self, allowed: frozenset[str] | set[str], denied: frozenset[str] | None = None) -> bool:
        """Test a session by its principals, and the groups that hold them.

        ``denied`` are those that the deny list is tested against, where a request has given some up; by default, the
        same.
        """
        if not (allowed if denied is None else denied).isdisjoint(self.deny):
            return False
        return self.allow is None or not allowed.isdisjoint(self.allow)

    def unknown(self, groups: Container[str]) -> tuple[str, ...]:
        """Return the groups of the deny list that are not among the known ones: who is in them cannot be told."""
        return tuple(one for one in self.deny if is_group(one) and one not in groups)


@final
@dataclass(frozen=True, slots=True)
class Identity:
    """A session's principals, with the groups that hold them. ``Identity()`` has none."""

    allowed: frozenset[str] = field(default=frozenset(), repr=False)
    """What an allow list is tested against: less than ``denied`` where a request has given principals up."""
    denied: frozenset[str] = field(default=frozenset(), repr=False)
    """What a deny list is tested against: everything that the host stated, and the groups that hold it."""
    groups: Container[str] = field(default=frozenset(), repr=False)
    """The groups that are known; a deny list with any other group hides its document."""
    memberships: str = ""
    """SHA-256, in hexadecimal, of the memberships by which the groups were found; empty without any."""
    respelt: frozenset[str] = field(default=frozenset(), repr=False)
    """What it is tested against as well: other spellings of these that the store knows, and the groups that hold them.
    They open nothing, because whether they are the same cannot be told."""

    def admits(self, audience: Audience) -> bool:
        """Tell whether the session belongs to an audience; one without principals only to that of everybody.

        Whether such a session is among those that a deny list names cannot be told.
        """
        # All tests run, without a short cut: the time taken must not tell which list hides the passage.
        is_known = (bool(self.denied) | (not audience)) & (not audience.unknown(self.groups))
        return audience.admits(self.allowed, self.barred) & is_known

    @property
    def barred(self) -> frozenset[str]:
        """All that a deny list is tested against."""
        return self.denied | self.respelt


def principals(name: str, values: object) -> frozenset[str]:
    """Check a list of principals, opaque texts of the form ``kind:id``, and return them as a set."""
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise InvalidArgument(
            f"{name} is {quoted(values)}; want a list of principals, such as ['group:treasury', 'user:ana']"
        )
    return _checked(name, frozenset(principal(name, one) for one in values))


def _checked(name: str, found: frozenset[str]) -> frozenset[str]:
    """Check that there are not too many principals, and that each has one spelling."""
    if len(found) > MAX_PRINCIPALS:
        raise InvalidArgument(f"{name} holds {len(found)} principals; want at most {MAX_PRINCIPALS}")
    spelled: dict[str, str] = {}
    for one in sorted(found):
        other = spelled.setdefault(one_spelling(one), one)
        if other != one:
            raise InvalidArgument(
                f"{name} holds {quoted(other)} and {quoted(one)}, two spellings of one principal; want one of them"
            )
    return found


def principal(name: str, value: object) -> str:
    """Check one principal and return it as a plain ``str``."""
    plain = str.__str__(value) if isinstance(value, str) else value
    if not isinstance(plain, str) or not _PRINCIPAL.fullmatch(plain) or not plain.isprintable():
        raise InvalidArgument(
            f"{name} holds {quoted(plain)}; want a kind and an id, such as 'group:treasury' or 'user:ana'"
        )
    return plain


def is_group(principal: str) -> bool:
    """Tell whether a principal is a group."""
    return principal.startswith(f"{GROUP}:")


def one_spelling(principal: str) -> str:
    """Return the form in which two spellings of one principal are equal: by case, width and composition.

    Examples
    --------
    >>> one_spelling("group:Treasury") == one_spelling("group:treasury")
    True
    """
    return normalize("NFKC", normalize("NFKC", principal).casefold())


NO_LISTS: Final = Audience()
"""The audience that is everybody."""
NOBODY: Final = Identity()
"""A session without principals, which finds documents for everybody only."""
