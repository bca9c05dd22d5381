"""Ask an authority outside the store about the documents that were found, before any of their text leaves.

An authority can only remove: it is asked after the policy and the audiences, about what they admit.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from carag.errors import AuthorizerUnavailable, InvalidArgument, type_and_place
from carag.limits import check_label, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


__all__ = ["Authority", "Authorizer"]

_MAX_KEPT: Final = 1 << 16
"""Greatest number of verdicts kept."""
_MAX_SECONDS: Final = 3600.0
_THREADS: Final = 4
"""Calls of an authority that run at once."""


@runtime_checkable
class Authorizer(Protocol):
    """Decides which documents a person may see, by rules that are kept elsewhere."""

    @property
    def name(self) -> str:
        """Its name and version, for records: at most 200 printable characters."""
        ...

    def allowed(self, principals: frozenset[str], document_ids: Sequence[str], /) -> Sequence[bool]:
        """Say for each document, in their order, whether a session with these principals may see it.

        It is called from several threads. Anything but a list of that many booleans, an exception among others, counts
        as unavailable.
        """
        ...


class Authority:
    """An authorizer with a time limit, whose verdicts are kept for a while.

    Parameters
    ----------
    authorizer : Authorizer
    timeout : float
        Seconds that one call may take. A request that would have to wait longer gets nothing, and is on record as an
        error.
    keep : float
        Seconds for which a verdict is used again for the same principals; 0 asks for every request.

    Examples
    --------
    >>> class Odd:
    ...     name = "odd/1"
    ...     def allowed(self, principals, document_ids):
    ...         return [len(one) % 2 == 1 for one in document_ids]
    >>> sorted(Authority(Odd()).inquiry(frozenset({"user:ana"})).allows(["a", "bb", "ccc"]))
    ['a', 'ccc']
    """

    def __init__(self, authorizer: Authorizer, *, timeout: float = 1.0, keep: float = 0.0) -> None:
        if not isinstance(authorizer, Authorizer):
            raise InvalidArgument(
                f"authorizer is a {type(authorizer).__name__}; want an object with `name` and `allowed`"
            )
        check_label("authorizer's name", authorizer.name)
        for what, value, least in (("timeout", timeout, 0.001), ("keep", keep, 0.0)):
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not least <= value <= _MAX_SECONDS
            ):
                raise InvalidArgument(
                    f"authorizer's {what} is {quoted(value)}; want {least:g} to {_MAX_SECONDS:g} seconds"
                )
        self.name = authorizer.name
        self._authorizer, self._timeout, self._keep = authorizer, timeout, keep
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="carag-authorizer")
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[frozenset[str], str], tuple[float, bool]] = OrderedDict()

    def inquiry(self, principals: frozenset[str]) -> Inquiry:
        """Begin to ask on behalf of one request."""
        return Inquiry(self, principals)

    def verdicts(self, principals: frozenset[str], ids: Sequence[str]) -> dict[str, bool]:
        """Return the verdict on each document; AuthorizerUnavailable if the authorizer does not give it in time."""
        now = time.monotonic()
        with self._lock:
            kept = {one: self._kept.get((principals, one)) for one in ids}
        known = {one: found[1] for one, found in kept.items() if found is not None and found[0] > now}
        if unknown := [one for one in ids if one not in known]:
            found = self._asked(principals, unknown)
            known |= found
            if self._keep:
                self._store(principals, found, time.monotonic() + self._keep)
        return known

    def close(self) -> None:
        """Begin no more calls; those that are running are not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _asked(self, principals: frozenset[str], ids: list[str]) -> dict[str, bool]:
        call = self._threads.submit(self._authorizer.allowed, principals, tuple(ids))
        try:
            said = call.result(self._timeout)
            mask = list(said)
        except TookTooLong:
            call.cancel()
            raise AuthorizerUnavailable(
                f"the authorizer {self.name} gave no verdict within {self._timeout:g} s; nothing is shown: ask again"
            ) from None
        except Exception as error:  # noqa: BLE001 - whatever it raises, it gave no verdict; its message may name documents
            raise AuthorizerUnavailable(
                f"the authorizer {self.name} failed ({type_and_place(error)}); nothing is shown: see its own log"
            ) from None
        if len(mask) != len(ids) or any(type(one) is not bool for one in mask):
            raise AuthorizerUnavailable(
                f"the authorizer {self.name} did not return one boolean for each of {len(ids)} documents; nothing is "
                "shown: correct its `allowed`"
            )
        return dict(zip(ids, mask, strict=True))

    def _store(self, principals: frozenset[str], found: dict[str, bool], until: float) -> None:
        with self._lock:
            for one, verdict in found.items():
                self._kept[principals, one] = until, verdict
                self._kept.move_to_end((principals, one))
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)


def any_authority(one: Authorizer | Authority) -> Authority:
    """Return an authorizer as an authority, with the usual time limit unless it states its own."""
    return one if isinstance(one, Authority) else Authority(one)


class Inquiry:
    """What an authority was asked during one request, and what it said."""

    def __init__(self, authority: Authority, principals: frozenset[str]) -> None:
        self.name = authority.name
        self._authority = authority
        self._principals = principals
        self._said: dict[str, bool] = {}

    def allows(self, ids: Iterable[str]) -> frozenset[str]:
        """Return the documents that the authority allows; each is asked about once a request."""
        wanted = list(dict.fromkeys(ids))
        if unknown := [one for one in wanted if one not in self._said]:
            self._said |= self._authority.verdicts(self._principals, unknown)
        return frozenset(one for one in wanted if self._said[one])

    @property
    def text(self) -> str:
        """The authority's name and all verdicts, as canonical JSON, for a commitment."""
        said = {"authority": self.name, "verdicts": self._said}
        return json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
