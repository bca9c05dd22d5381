"""Say what the figures recommend, by one rule: a model is better only where a paired interval excludes 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bench.metric.retrieval import DECIDES

if TYPE_CHECKING:
    from collections.abc import Mapping


_OPENING: Final = """\
**For those who have to rely on it.** The metric says of a text whether a regulation supports it. Held against {n}
pieces of technical documentation that legal experts had judged, the best of {combinations} combinations of models
agrees with them in {right} of the cases (95 % interval {right_low} to {right_high}); the same answer to everything is
right in
{constant}. Its agreement beyond chance (Cohen's kappa: 0 is chance, 1 is perfect) is {kappa:.2f} ({low:.2f} to
{high:.2f}); that of two experts with each other is {least:.2f} to {most:.2f}. {proven} With the paper's own thresholds,
{stuck} of {paper} combinations say the same of every piece. No verdict measured here should decide anything alone:
read the passages that it names."""


def recommended(values: Mapping[str, float], differences: Mapping[str, Mapping[str, float]]) -> str:
    """Return what is recommended of several models.

    Parameters
    ----------
    values : mapping
        The figure of each, greater for a better one.
    differences : mapping
        Intervals of paired differences, each by ``"one - other"``.

    Examples
    --------
    >>> recommended({"a": 0.9, "b": 0.5}, {"a - b": {"low": 0.1, "high": 0.7}})
    '`a`, better than `b`'
    >>> recommended({"a": 0.9, "b": 0.5}, {"b - a": {"low": -0.9, "high": 0.1}})
    'no difference shown between `a` and `b`'
    """
    best = max(values, key=lambda name: values[name])
    others = sorted((name for name in values if name != best), key=lambda name: -values[name])
    beaten = [name for name in others if _better(best, name, differences)]
    level = [best, *(name for name in others if name not in beaten)]
    if len(level) == 1:
        return f"`{best}`" + (f", better than {_listed(beaten)}" if beaten else ", measured alone")
    said = f"no difference shown between {_listed(level)}"
    return said + (f"; `{best}` is better than {_listed(beaten)}" if beaten else "")


def advice(found: Mapping[str, Any]) -> str:
    """Return the recommendations, a line for each corpus and part."""
    lines = [
        "Which models, by one rule: the best figure, and only over those whose paired interval with it excludes 0.",
        "",
    ]
    for part in found["retrieval"]:
        values = {name: one[DECIDES]["value"] for name, one in part["figures"].items()}
        lines.append(
            f"- Embedder for {part['corpus']} ({DECIDES}): {recommended(values, part['differences'])}."
        )
    for part in found["classification"]:
        values = {name: one["macro-F1"]["value"] for name, one in part["figures"].items()}
        chance = [name for name, one in part["figures"].items() if one["AUC"]["low"] > 0.5]
        lines.append(
            f"- Reranker for {part['set']} (macro-F1): {recommended(values, part['differences'])}. "
            + (
                f"Better than chance (AUC): {_listed(chance)}."
                if chance
                else "None is shown to be better than chance (AUC)."
            )
        )
    part = found["joint"]["excerpts"]
    best, rows = part["best"], part["figures"]
    values = {name: one["kappa"]["value"] for name, one in rows.items()}
    beaten = sum(_better(best, name, part["differences from the best"]) for name in values if name != best)
    chance = [name for name, one in rows.items() if one["kappa"]["low"] > 0]
    lines.append(
        f"- Combination (kappa): `{best}` has the greatest, {values[best]:.2f}, and is shown to be "
        f"better than {beaten} of {len(values) - 1} others. Above chance are {len(chance)} of {len(values)}"
        + (f": {_listed(chance)}." if 0 < len(chance) < 9 else ".")
    )
    return "\n".join(lines)


def opening(found: Mapping[str, Any]) -> str:
    """Return a paragraph for those who have to rely on a verdict."""
    part = found["joint"]["excerpts"]
    best = part["figures"][part["best"]]
    right, kappa = best["accuracy"], best["kappa"]
    constant = max(part[name]["accuracy"]["value"] for name in ("always compliant", "never compliant"))
    ceiling = [one["value"] for one in found["joint"]["experts"].values()]
    paper = [one for one in part["figures"].values() if one["variant"] == "paper"]
    stuck = sum(max(one["said"].values()) == part["n"] for one in paper)
    proven = (
        "That is more than chance, but this one is the best of many, picked after the fact."
        if kappa["low"] > 0
        else "So it is **not** shown to be better than chance."
    )
    return _OPENING.format(
        n=part["n"],
        combinations=len(part["figures"]),
        right=_percent(right["value"]),
        right_low=_percent(right["low"]),
        right_high=_percent(right["high"]),
        constant=_percent(constant),
        kappa=kappa["value"],
        low=kappa["low"],
        high=kappa["high"],
        least=min(ceiling),
        most=max(ceiling),
        proven=proven,
        stuck=stuck,
        paper=len(paper),
    )


def _percent(one: float) -> str:
    return f"{100 * one:.0f} %"


def _better(one: str, other: str, differences: Mapping[str, Mapping[str, float]]) -> bool:
    if (found := differences.get(f"{one} - {other}")) is not None:
        return found["low"] > 0
    found = differences.get(f"{other} - {one}")
    return found is not None and found["high"] < 0


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
