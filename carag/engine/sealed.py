"""Calls whose errors carry out nothing that was not recorded."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from carag.errors import without_frames

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["sealed"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def sealed(method: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let no error carry out, in its frames, a passage or an answer: whatever was found was then not recorded."""

    @wraps(method)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return method(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - raised again below, without its frames
            raised = error
        without_frames(raised)
        raise raised

    return call
