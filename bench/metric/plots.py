"""Draw the benchmark's figures as SVG, by the house's own plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from bench.metric.measures import THRESHOLDS
from bench.metric.retrieval import DECIDES
from carag.evaluation.report.svg import Dot, dots, lines

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["draw"]

_AT_ONCE: Final = 4
"""Lines of one picture, which has four colours."""


def draw(found: dict[str, Any], home: Path) -> None:
    """Draw every picture, and name those of each set in its part."""
    home.mkdir(parents=True, exist_ok=True)
    for old in home.glob("*.svg"):
        old.unlink()
    for part in found["retrieval"]:
        marks = [_dot(name, one[DECIDES]) for name, one in part["figures"].items()]
        picture = dots(f"{DECIDES}, {part['corpus']}, n = {part['questions']}", marks, unit=DECIDES)
        (home / f"recall-{_slug(part['corpus'])}.svg").write_text(picture, encoding="utf-8")
    for part in found["classification"]:
        part["plots"] = _curves(part, home)
    for what in ("excerpts", "sessions"):
        part = found["joint"][what]
        marks = [_dot(name, one["kappa"]) for name, one in part["figures"].items()]
        marks += [_dot(f"experts {name}", one) for name, one in found["joint"]["experts"].items()]
        picture = dots(f"Agreement with the experts by {what}, n = {part['n']}", marks, unit="Cohen's kappa")
        (home / f"kappa-{what}.svg").write_text(picture, encoding="utf-8")


def _curves(part: dict[str, Any], home: Path) -> list[str]:
    made = []
    names = list(part["figures"])
    for at, start in enumerate(range(0, len(names), _AT_ONCE), start=1):
        some = {name: part["figures"][name] for name in names[start : start + _AT_ONCE]}
        sweep = [
            (
                f"{name} (chosen {one['thresholds'][len(one['thresholds']) // 2]:.2f})",
                list(zip(THRESHOLDS, one["F1 by threshold"], strict=True)),
            )
            for name, one in some.items()
        ]
        title = f"{part['set']}, n = {part['n']}"
        made.append(f"f1-{_slug(part['set'])}-{at}")
        picture = lines(
            f"{title}: the paper's threshold is 0.6", sweep, across="contradiction threshold", up="macro-F1"
        )
        (home / f"{made[-1]}.svg").write_text(picture, encoding="utf-8")
        curve = [(name, [tuple(point) for point in one["PR curve"]]) for name, one in some.items()]
        made.append(f"pr-{_slug(part['set'])}-{at}")
        picture = lines(f"{title}: contradiction", curve, across="recall", up="precision")
        (home / f"{made[-1]}.svg").write_text(picture, encoding="utf-8")
    return made


def _dot(label: str, one: dict[str, Any]) -> Dot:
    return Dot(_short(label), one["value"], one["low"], one["high"], f"n = {one['n']}")


def _short(label: str) -> str:
    return label.replace(", threshold cross-validated", " by CV")


def _slug(name: str) -> str:
    return "-".join(name.lower().split())
