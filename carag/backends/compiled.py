"""Compile a policy to the words that it admits among those known at an epoch; unknown words are closed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from carag.backends.protocol import Admitted
from carag.errors import InvalidArgument
from carag.policy import EVERYBODY, MAX_ENTITY, Mask, Policy
from carag.policy.mask import check_policy
from carag.policy.time import instants

if TYPE_CHECKING:
    from datetime import date, datetime


def admitted_at(
    words: tuple[int, ...],
    policy: Policy | Mask,
    as_of: datetime | date | int | None,
    alive_at: datetime | date | int | None,
) -> Admitted | None:
    """Compile a policy and its times; None if no row can be admissible, so that no backend need be asked.

    - ``words``: known at the epoch.
    - ``as_of``, ``alive_at``: as for :meth:`carag.Index.search`.

    Raises InvalidArgument if there is no policy, a time is not valid, or an entity has more than 32 bits.

    Examples
    --------
    >>> from carag.policy import policy_word
    >>> words = (policy_word(1), policy_word(3))
    >>> admitted_at(words, Mask(required=2), 0, None).words == words[1:]
    True
    >>> admitted_at(words, Mask(required=4), 0, None) is None
    True
    """
    check_policy(policy)
    public, alive = instants(as_of, alive_at)
    whole = Policy(policy) if isinstance(policy, Mask) else policy
    allowed, denied = whole.allow_entities, whole.deny_entities
    for listed in (allowed or (), denied):
        if listed and listed[-1] > MAX_ENTITY:
            raise InvalidArgument(
                f"the policy lists entity {listed[-1]}; want 0 to {MAX_ENTITY}, the entity numbers of the "
                "backend's rows"
            )
    open_words = _admitted(whole, words)
    if not open_words or allowed == ():
        return None
    shared = None if whole.any_audience else (EVERYBODY, *whole.audiences)
    return Admitted(open_words, public, alive, allowed, denied, shared, whole)


@lru_cache(maxsize=256)
def _admitted(policy: Policy, words: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(word for word in words if any(mask.admits(word) for mask in policy.masks))
