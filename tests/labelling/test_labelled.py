"""The content hash decides what is fresh."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.labelling.labelled import content_hash


@given(st.dictionaries(st.text(), st.none() | st.integers() | st.text()), st.lists(st.text()), st.text())
def test_content_hash_is_canonical(facts: dict[str, Any], texts: list[str], version: str) -> None:
    """The order of the facts does not matter; everything else does."""
    digest = content_hash(facts, texts, version=version)
    assert digest == content_hash(dict(reversed(facts.items())), iter(texts), version=version)
    others = [
        (facts, texts, version + "x"),
        (facts, [*texts, ""], version),
        (facts | {"extra key": 1}, texts, version),
    ]
    assert digest not in {
        content_hash(f, t, version=v) for f, t, v in others if (f, t, v) != (facts, texts, version)
    }


def test_content_hash_refuses_what_json_cannot_say() -> None:
    """A fact that JSON cannot say would hash by accident."""
    with pytest.raises(InvalidArgument, match="JSON"):
        content_hash({"when": object()}, [], version="1")
