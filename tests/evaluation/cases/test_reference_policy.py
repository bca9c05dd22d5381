"""The reference policy of every profile that ships says what its compiled masks say."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import Refused
from carag.evaluation.cases.reference_policy import ReferenceLabel, ReferencePolicy, reference_session
from carag.policy import NEVER, VERSION_WORD, Profile, Session, as_of_minutes, infer
from carag.policy.shipped import SHIPPED

NOW = datetime(2026, 11, 1, tzinfo=UTC)
PROFILES = {name: Profile.open(name) for name in SHIPPED}


@pytest.mark.parametrize("name", SHIPPED)
@given(data=st.data())
def test_a_plain_reading_equals_the_compiled_masks(name: str, data: st.DataObject) -> None:
    """For every role, purpose, intent, label and day: who is refused, and what is admitted."""
    profile = PROFILES[name]
    means, roles = profile.texts
    plain, table = ReferencePolicy(roles, means), profile.table
    role, purpose = (data.draw(st.sampled_from(sorted(known))) for known in (table.roles, table.purposes))
    as_of = data.draw(st.sampled_from([None, date(2025, 5, 1), date(2030, 1, 1)]))
    intents = data.draw(
        st.sets(st.sampled_from([one.name for one in table.vocabulary.intents.rules] or [""]))
    )
    allow = data.draw(st.sampled_from([None, frozenset({7})]))
    minutes = None if as_of is None else as_of_minutes(as_of, table.vocabulary.zone)
    said = reference_session(role, purpose, as_of=minutes, allow=allow, intents=intents - {""})
    now = as_of_minutes(NOW)
    session = Session(role=role, purpose=purpose, as_of=as_of, allow_entities=allow)
    if (refused := plain.refused(said, now=now)) is not None:
        with pytest.raises(Refused) as refusal:
            infer(session, table, now=NOW, intents=intents - {""})
        assert refusal.value.code == refused
        return
    decision = infer(session, table, now=NOW, intents=intents - {""})
    word = data.draw(st.integers(0, (1 << len(table.vocabulary.flags)) - 1)) | VERSION_WORD
    about = frozenset(data.draw(st.sampled_from([(), (7,), (8,), (7, 8)])))
    public_at = data.draw(st.sampled_from([0, as_of_minutes(date(2026, 1, 1)), now + 1]))
    label = ReferenceLabel(word, plain.names(word), about, public_at, NEVER)
    admitted = not decision.reasons(word, public_at, entity=about, expires_at=NEVER)
    assert admitted == plain.admits(said, label, now=now)


def test_it_reads_the_past_a_profile_grants() -> None:
    """Without `past`, a session of yesterday may use nothing; without a day it is not refused."""
    means, roles = PROFILES["generic"].texts
    plain = ReferencePolicy(roles, means)
    yesterday = reference_session("employee", "work", as_of=9)
    assert plain.refused(yesterday, now=10) == "PAST_NOT_GRANTED"
    assert plain.refused(yesterday) is None
    assert plain.refused({**yesterday, "role": "counsel", "purpose": "advise"}, now=10) is None
