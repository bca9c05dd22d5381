"""Hold what a session may use, and split it into searches with one policy each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from carag.policy.audience import NO_LISTS, NOBODY, Identity
from carag.policy.explain import OTHER_AUDIENCE, Rule, cooling_reason, reasons, withheld_kinds
from carag.policy.mask import NO_ENTITY, Policy, members
from carag.policy.time import NEVER
from carag.policy.vocabulary import vocabulary_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from carag.policy.asked_day import AskedDay
    from carag.policy.audience import Audience
    from carag.policy.explain import Reason
    from carag.policy.restrictions import Basis, Ground


_CONTROL_RULES: Final = frozenset({Rule.TOMBSTONE, Rule.UNLABELLED, Rule.QUARANTINE})
"""Rules of the control bits (27-31), which hide a passage whatever the policy and the instant."""


@dataclass(frozen=True, slots=True)
class Search:
    """One policy, and the instants at which a row must be public and not expired: the input of one index search."""

    policy: Policy
    as_of: int
    """Minutes since 1970-01-01T00:00Z by which a row must be public."""
    alive_at: int | None = None
    """The minute at which a row must not have expired, ``as_of`` or later; None means ``as_of``."""


class Labelled(Protocol):
    """What a decision tests: a passage of a store, or one of its labels."""

    @property
    def word(self) -> int:
        """Its policy word."""
        ...

    @property
    def public_at(self) -> int:
        """Minutes since 1970-01-01T00:00Z from which the word is valid."""
        ...

    @property
    def expires_at(self) -> int:
        """Minutes since 1970-01-01T00:00Z until which the word is valid."""
        ...

    @property
    def subjects(self) -> Collection[int]:
        """All entities that the passage may be about."""
        ...

    @property
    def audience(self) -> Audience:
        """Who may see it."""
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    """What a session may use.

    ``reopened`` admits all companies but those of the firm's deals, and requires what ``policy`` forbids, so that no
    passage is admitted twice. ``cooling`` is in minutes.
    """

    role: str
    purpose: str
    policy: Policy
    as_of: int
    """Minutes since 1970-01-01T00:00Z."""
    known_at: int | None
    """Microseconds since 1970-01-01T00:00Z; None means everything known now."""
    may_know_existence: bool
    table_sha256: str
    regulation: str = ""
    reopened: Policy | None = None
    cooling: int = 0
    grounds: tuple[Ground, ...] = field(default=(), repr=False)
    intents: tuple[str, ...] = ()
    asked_day: AskedDay | None = None
    identity: Identity = NOBODY
    """Who asks."""

    @property
    def cooled(self) -> int:
        """The bits that a cooling time holds back, as a vector: for EDGAR, reports of material events."""
        return vocabulary_of(self.policy.flags).groups.cooling

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies, any of which may admit."""
        return (self.policy,) if self.reopened is None else (self.policy, self.reopened)

    @property
    def searches(self) -> tuple[Search, ...]:
        """The searches whose results together are what is admissible; no passage is admissible in two of them.

        A cooling time turns each search into two: one for passages that are not material and are public at the
        session's instant, and one for material passages that were public earlier than that by the cooling time. No
        passage may have expired at the session's instant. A new label of an old passage starts a new cooling time.

        Examples
        --------
        >>> from carag.policy.mask import Mask
        >>> cooled = Decision("r", "p", Policy(Mask()), 100, None, False, "", cooling=30)
        >>> [(hex(s.policy.masks[0].required), s.as_of, s.alive_at) for s in cooled.searches]
        [('0x0', 100, None), ('0x20000', 70, 100)]
        """
        if not self.cooling:
            return tuple(Search(policy, self.as_of) for policy in self.policies)
        found = []
        for policy in self.policies:
            fresh = [
                mask.tightened(forbidden=self.cooled)
                for mask in policy.masks
                if not mask.required & self.cooled
            ]
            old = [
                mask.tightened(required=self.cooled)
                for mask in policy.masks
                if not mask.forbidden & self.cooled
            ]
            if fresh:
                found.append(Search(policy.with_masks(*fresh), self.as_of))
            if old and self.as_of >= self.cooling:
                found.append(Search(policy.with_masks(*old), self.as_of - self.cooling, self.as_of))
        return tuple(found) or (Search(Policy(), self.as_of),)

    def admits(
        self,
        word: int,
        public_at: int,
        *,
        entity: int | Collection[int] = NO_ENTITY,
        expires_at: int = NEVER,
        audience: Audience = NO_LISTS,
    ) -> bool:
        """Test one passage: admissible if and only if :meth:`reasons` is empty, at the same cost whatever hides it.

        Examples
        --------
        >>> from carag.policy.mask import Mask
        >>> cooled = Decision("r", "p", Policy(Mask()), 100, None, False, "", cooling=30)
        >>> cooled.admits(0x0802_0000, 60), cooled.admits(0x0802_0000, 90)
        (True, False)
        """
        is_public = public_at <= self.as_of < expires_at
        is_cooled = not (self.cooling and word & self.cooled) or public_at + self.cooling <= self.as_of
        # All tests run, without a short cut: the time taken must not reveal which test hides the passage.
        verdicts = [policy.admits(word, entity) for policy in self.policies]
        return any(verdicts) & is_public & is_cooled & self.identity.admits(audience)

    def reasons(
        self,
        word: int,
        public_at: int,
        *,
        entity: int | Collection[int] = NO_ENTITY,
        expires_at: int = NEVER,
        audience: Audience = NO_LISTS,
    ) -> tuple[Reason, ...]:
        """Give the minimal reasons why one passage is hidden; empty exactly when it is admissible.

        ``entity`` is the entity that the passage is about, or all that it may be about. Where a passage is shared with
        others only, the reason does not say with whom.

        Examples
        --------
        >>> from carag.policy.mask import Mask
        >>> cooled = Decision("r", "p", Policy(Mask()), 100, None, False, "", cooling=30)
        >>> [reason.code for reason in cooled.reasons(0x0802_0000, 90)]
        ['COOLING:MATERIAL']
        """
        verdicts = [
            reasons(word, public_at, policy, self.as_of, entity=entity, expires_at=expires_at)
            for policy in self.policies
        ]
        nearest = min(verdicts, key=len)
        if any(reason.rule in _CONTROL_RULES for reason in nearest):
            return nearest
        if not self.identity.admits(audience):
            nearest = (*nearest, OTHER_AUDIENCE)
        if self.cooling and word & self.cooled and public_at <= self.as_of < public_at + self.cooling:
            return (*nearest, cooling_reason(self.cooling, public_at, self.policy.flags))
        return nearest

    def admits_labelled(self, one: Labelled) -> bool:
        """Test a passage or label by its stored fields, as :meth:`admits` does."""
        return self.admits(
            one.word, one.public_at, entity=one.subjects, expires_at=one.expires_at, audience=one.audience
        )

    def reasons_for(self, one: Labelled) -> tuple[Reason, ...]:
        """Explain a passage or label by its stored fields, as :meth:`reasons` does."""
        return self.reasons(
            one.word, one.public_at, entity=one.subjects, expires_at=one.expires_at, audience=one.audience
        )

    @property
    def withheld(self) -> tuple[Reason, ...]:
        """The kinds of document that are hidden, derived from the session and the table alone."""
        kinds = withheld_kinds(*self.policies, cooling=self.cooling)
        return (*kinds, OTHER_AUDIENCE) if self.identity.denied else kinds

    def bases(self, entity: int | Collection[int]) -> tuple[Basis, ...]:
        """Return why an entity, or any of several, is denied; empty if none is on any list of the session."""
        about = members(entity)
        return tuple(ground.basis for ground in self.grounds if not ground.entities.isdisjoint(about))
