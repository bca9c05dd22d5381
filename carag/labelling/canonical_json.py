"""Write canonical JSON, which is hashed and compared byte by byte."""

from __future__ import annotations

import json
from typing import Final

from carag.errors import InvalidArgument

_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: object, what: str) -> str:
    r"""Write a value in ASCII with sorted keys and no spaces; InvalidArgument, naming ``what``, if it is not JSON."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"{what} cannot be written as JSON: {error}; use JSON values only") from error
