"""State how well each variant agrees with experts, wherever its verdicts are shown."""

from __future__ import annotations

from typing import Final, NamedTuple

from carag.evaluation.regulatory.variants import Variant


class Agreement(NamedTuple):
    """Cohen's kappa of a variant with its default models and the median of three experts."""

    kappa: float
    low: float
    """Lower end of the 95 % interval."""
    high: float
    n: int
    """Excerpts of documentation under the AI Act (AIReg-Bench) on which the experts decide."""
    decided: int
    """How many of these the variant calls COMPLIANT or NON_COMPLIANT."""


AGREEMENT: Final = {
    Variant.PAPER: Agreement(0.0, 0.0, 0.0, 73, 73),
    Variant.REFERENCE: Agreement(0.0, 0.0, 0.0, 73, 73),
    Variant.STANCE: Agreement(0.014, 0.0, 0.044, 73, 2),
}
"""From ``bench/metric/results.json``."""


def agreement(variant: Variant) -> str:
    """Return one sentence for a terminal or a page.

    Examples
    --------
    >>> agreement(Variant.PAPER)[:67]
    'Agreement of paper with experts: kappa 0.00 (95 % interval 0.00 to '
    """
    found = AGREEMENT[variant]
    return (
        f"Agreement of {variant.value} with experts: kappa {found.kappa:.2f} (95 % interval {found.low:.2f} to "
        f"{found.high:.2f}; 0 is chance), n = {found.n} excerpts, of which it decides {found.decided}; measured with "
        "the default models on documentation under the AI Act. Read the passages before you rely on a verdict."
    )
