"""Write a result as one page of HTML, on which every verdict links to the passage that it rests on, and back.

The file contains no script and loads nothing, and all text that strangers wrote is escaped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from carag.evaluation.regulatory.agreement import agreement
from carag.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from carag.evaluation.regulatory.run import MetricRun
    from carag.evaluation.regulatory.schemas import RegulatoryMetric
    from carag.evaluation.regulatory.variants import Settings


def page(sessions: Iterable[RegulatoryMetric], settings: Settings, run: MetricRun) -> Iterator[str]:
    """Yield the page in pieces; it needs Jinja, of the extra ``bench``."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=PackageLoader("carag.evaluation.regulatory"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda one: visible(one) if isinstance(one, str) and not isinstance(one, Markup) else one,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["line"] = lambda text: " ".join(visible(text).split())
    values = {
        "sessions": sessions,
        "settings": settings,
        "run": run,
        "agreement": agreement(settings.variant),
    }
    return made.get_template("page.html.j2").generate(values)
