"""What is open until it is closed, and says so afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from carag.errors import InvalidArgument
from carag.visible import logger

if TYPE_CHECKING:
    from contextlib import ExitStack
    from types import TracebackType

__all__ = ["Lifetime"]

_logger = logger(__name__)


class Lifetime:
    """Holds resources from :meth:`_begin` to :meth:`close`; also as a context manager."""

    _resources: ExitStack
    _closed = False

    def _begin(self, resources: ExitStack) -> None:
        """Take resources over; from here on they are this object's to close."""
        self._resources = resources.pop_all()
        _logger.info("opened %r", self)

    def _check_open(self) -> None:
        if self._closed:
            name = type(self).__name__
            raise InvalidArgument(
                f"this {name.lower()} is closed; open the store again with carag.{name}.open(...)"
            )

    def close(self) -> None:
        """Close everything held; harmless when repeated."""
        self._closed = True
        self._resources.close()
        _logger.info("closed %r", self)

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
