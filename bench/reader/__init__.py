"""Train and measure a reader of our own.

python -m bench.reader.train --shared PATH --fitz WHEEL --conj FILE --work DIR     # seeded; goes on where it stopped
python -m bench.reader.measure --shared PATH --fitz WHEEL                           # by the weights that ship
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


def area(yes: Sequence[float], no: Sequence[float]) -> float:
    """Return how often a score of the first kind is above one of the second; ties count half."""
    if not len(yes) or not len(no):
        return float("nan")
    above = np.subtract.outer(np.asarray(yes), np.asarray(no))
    return float(np.mean((above > 0) + 0.5 * (above == 0)))
