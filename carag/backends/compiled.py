"""Compile a policy to the words that it admits among those known at an epoch; what is not known then is closed."""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

from carag.backends.protocol import Admitted
from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.policy import MAX_ENTITY, NEVER, Mask, Policy, as_of_minutes
from carag.policy.bits import whole_number

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["admitted_at", "minutes"]


def admitted_at(
    words: tuple[int, ...],
    policy: Policy | Mask,
    as_of: datetime | date | int | None,
    alive_at: datetime | date | int | None,
) -> Admitted | None:
    """Compile a policy and its instants; None if no row can be admissible, and then no backend is asked.

    Parameters
    ----------
    words : tuple of int
        Known at the epoch that is asked.
    policy : Policy or Mask
    as_of, alive_at : datetime, date or int, optional
        As for :meth:`carag.Index.search`.

    Raises
    ------
    InvalidArgument
        If there is no policy, an instant is none, or an entity has more than 32 bits.

    Examples
    --------
    >>> from carag.policy import policy_word
    >>> words = (policy_word(1), policy_word(3))
    >>> admitted_at(words, Mask(required=2), 0, None).words == words[1:]
    True
    >>> admitted_at(words, Mask(required=4), 0, None) is None
    True
    """
    if type(policy) is not Policy and type(policy) is not Mask:
        raise InvalidArgument(
            f"policy is {quoted(policy)}; want a carag.Policy or carag.Mask: nothing is searched without one"
        )
    public = 0 if as_of is None else minutes("as_of", as_of)
    alive = public if alive_at is None else minutes("alive_at", alive_at)
    if alive < public:
        raise InvalidArgument(f"alive_at is minute {alive}; want minute {public}, which is as_of, or later")
    whole = Policy(policy) if isinstance(policy, Mask) else policy
    allowed, denied = whole.allow_entities, whole.deny_entities
    for listed in (allowed or (), denied):
        if listed and listed[-1] > MAX_ENTITY:
            raise InvalidArgument(
                f"the policy lists entity {listed[-1]}; a backend's rows have 0 to {MAX_ENTITY}: give the numbers of "
                "its rows"
            )
    open_words = _admitted(whole, words)
    if not open_words or allowed == ():
        return None
    return Admitted(open_words, public, alive, allowed, denied, whole)


@lru_cache(maxsize=256)
def _admitted(policy: Policy, words: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(word for word in words if any(mask.admits(word) for mask in policy.masks))


def minutes(name: str, instant: datetime | date | int) -> int:
    """Read an instant, or a day, as minutes since 1970-01-01T00:00Z."""
    if isinstance(instant, date):
        return as_of_minutes(instant, name=name)
    try:
        number = whole_number(instant)
    except TypeError:
        number = -1
    if not 0 <= number < NEVER:
        raise InvalidArgument(
            f"{name} is {quoted(instant)}; want an instant, or minutes from 0 to {NEVER - 1}"
        )
    return number
