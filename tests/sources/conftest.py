"""A site of its own for each test, and a clock that only sleeping moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sources.site import Clock, Site, published

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def site(clock: Clock) -> Iterator[Site]:
    with published(clock, {}) as site:
        yield site
