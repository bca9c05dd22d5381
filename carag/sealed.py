"""Calls whose errors carry out nothing that was not recorded."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from carag.errors import AuditUnavailable, without_frames

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["sealed"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def sealed(method: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let no error of an unwritable log carry out, in its frames, the text whose record could not be written."""

    @wraps(method)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return method(*args, **kwargs)
        except AuditUnavailable as error:
            unavailable = error
        without_frames(unavailable)
        raise unavailable

    return call
