"""A double of Amazon Bedrock, and invalid credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.bedrock.double import ENVIRONMENT, UNSET, ServiceModel, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bedrock.double import Double


@pytest.fixture(scope="session")
def service() -> ServiceModel:
    pytest.importorskip("boto3", reason="the extra 'bedrock' is not installed")
    return ServiceModel()


@pytest.fixture
def bedrock(service: ServiceModel, monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    """A running double, invalid credentials, and retries that do not wait."""
    import botocore.endpoint

    class NoWaiting:
        """Stands in for the module ``time`` where botocore sleeps between tries."""

        @staticmethod
        def sleep(_: float) -> None:
            return None

        def __getattr__(self, name: str) -> Any:
            import time

            return getattr(time, name)

    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(botocore.endpoint, "time", NoWaiting())
    with serving(service) as double:
        yield double
    assert [] == double.faults
