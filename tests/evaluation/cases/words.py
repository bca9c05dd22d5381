"""Words that passages and evidence are made of: few, so that n-grams repeat."""

from __future__ import annotations

from hypothesis import strategies as st

WORD = st.sampled_from(
    [
        "net",
        "sales",
        "rose",
        "fell",
        "by",
        "cost",
        "the",
        "of",
        "tax",
        "year",
        "unit",
        "gain",
        "loss",
        "debt",
        "cash",
    ]
)
