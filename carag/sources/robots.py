"""Obey ``robots.txt`` as RFC 9309 says: request nothing if it cannot be read, anything if it is absent.

The rules are read by Protego. The standard library's parser takes the first rule that matches, where 2.2.2 wants the
longest, and knows wildcards only from the Python versions of 2026 on (https://github.com/python/cpython/issues/138907).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.http import NoAnswer
from carag.sources.address import Address
from carag.sources.polite import Paused

if TYPE_CHECKING:
    from collections.abc import Callable

    from protego import Protego

    from carag.sources.polite import Polite


TOKEN: Final = "carag"  # noqa: S105 - the product token of RFC 9309, 2.2.1
"""The name of this program in a ``robots.txt``."""
MAX_AGE: Final = 24 * 3600.0
"""Seconds for which rules are kept (RFC 9309, 2.4)."""
MAX_BYTES: Final = 1 << 20
"""Greatest number of bytes; RFC 9309, 2.5, wants at least 500 KiB. A larger file is not read in part: a rule may follow
later."""
_REDIRECTS: Final = 5
"""RFC 9309, 2.3.1.2: follow at least this number of redirects, even to other hosts."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What one origin allows."""

    parsed: Protego | None
    """None if there is no ``robots.txt``, and everything is allowed."""

    def allows(self, address: Address) -> bool:
        """Tell whether an address may be requested."""
        return self.parsed is None or self.parsed.can_fetch(str(address), TOKEN)

    def interval(self, least: float) -> float:
        """Return the seconds between two requests: what the rules ask for, but at least ``least``."""
        if self.parsed is None:
            return least
        rate = self.parsed.request_rate(TOKEN)
        asked = rate.seconds / rate.requests if rate and rate.requests else 0.0
        return max(least, self.parsed.crawl_delay(TOKEN) or 0.0, asked)


class Robots:
    """The rules of each origin, requested when they are first needed and then once a day.

    ``interval`` is the number of seconds between two requests before the rules are known.
    """

    def __init__(self, polite: Polite, *, interval: float, clock: Callable[[], float]) -> None:
        self._polite, self._interval, self._clock = polite, interval, clock
        self._known: dict[str, tuple[float, Rules]] = {}

    def rules(self, address: Address) -> Rules:
        """Return the rules for an address; Paused if they cannot be read: RFC 9309, 2.3.1.4, then allows nothing."""
        known = self._known.get(address.origin)
        if known is None or self._clock() - known[0] >= MAX_AGE:
            known = self._clock(), self._asked(Address.of(address.origin + "/robots.txt"))
            self._known[address.origin] = known
        return known[1]

    def _asked(self, address: Address) -> Rules:
        from protego import Protego

        first = address
        for _ in range(_REDIRECTS + 1):
            try:
                reply = self._polite.get(address, {}, interval=self._interval, kinds=None, most=MAX_BYTES)
                if reply.status in (301, 302, 303, 307, 308):
                    to = Address.of(reply.headers.get("location", ""), str(address))
                    if address.scheme == "https" and to.scheme == "http":
                        raise NoAnswer("it redirects from https to http", is_final=True)  # noqa: TRY301
                    address = to
                    continue
            except (NoAnswer, InvalidArgument) as error:
                raise Paused(f"{first} cannot be read, so nothing else is requested: {error}") from None
            if reply.body is not None:
                return Rules(Protego.parse(reply.body.decode("utf-8-sig", "replace")))
            if 400 <= reply.status < 500:  # 429 does not arrive here: see Polite
                return Rules(None)
            raise Paused(f"{first} cannot be read, so nothing else is requested: status {reply.status}")
        raise Paused(
            f"{first} cannot be read, so nothing else is requested: more than {_REDIRECTS} redirects"
        )
