"""Attack a retrieval system with documents planted in it: ``carag attack``."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carag.cli._output import say_json, say_lines, warn
from carag.errors import InvalidArgument, type_and_place
from carag.limits import quoted

if TYPE_CHECKING:
    from carag.evaluation.attack import Target


class Format(StrEnum):
    """How a report is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


_Target = typer.Argument(metavar="TARGET", help="[b]MODULE:FACTORY[/b], or an HTTP address with --mapping.")
_Mapping = typer.Option(metavar="FILE", help="Says in TOML how the service at the address is asked.")
_Thorough = typer.Option(
    "--thorough", help="Three rounds with more documents, for up to an hour instead of 60 s."
)
_Badge = typer.Option(metavar="FILE", help="Write the outcome as an SVG picture.")


def attack(
    target: Annotated[str, _Target],
    mapping: Annotated[Path | None, _Mapping] = None,
    thorough: Annotated[bool, _Thorough] = False,
    requests: Annotated[int | None, typer.Option(metavar="N", min=1, help="The most requests.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Decides documents and questions.")] = 0,
    form: Annotated[Format, typer.Option("--format", help="How the report is written.")] = Format.TEXT,
    badge: Annotated[Path | None, _Badge] = None,
) -> int:
    """Plant documents in any retrieval system, look for what leaks, and remove them again.

    Only the given target is asked. The command ends with 0 if nothing was found, with 1 after a finding, and with 2 if
    the target could not be tested.

    [dim]carag attack my_search:target --format markdown > report.md[/dim]
    """
    from carag.evaluation.attack import QUICK, THOROUGH, page
    from carag.evaluation.attack import attack as attacked

    bounds = THOROUGH if thorough else QUICK
    bounds = replace(bounds, requests=requests or bounds.requests)
    made = _target(target, mapping)
    report = attacked(made, target, bounds, seed=seed, say=lambda line: warn(line, style="dim"))
    if form is Format.JSON:
        say_json(page.as_value(report))
    else:
        say_lines((page.as_text if form is Format.TEXT else page.as_markdown)(report))
    if badge is not None:
        badge.write_text(page.badge(report), "utf-8")
    return report.exit_code


def _target(named: str, mapping: Path | None) -> Target:
    if named.startswith(("http://", "https://")) != (mapping is not None):
        raise InvalidArgument(
            f"the target is {quoted(named)}; want MODULE:FACTORY, or an address and --mapping"
        )
    if mapping is not None:
        from carag.evaluation.attack.mapping import HttpTarget

        return HttpTarget(named, mapping)
    from carag.engine.factories import imported

    factory = imported("target", named)
    try:
        made: Target = factory()
    except (Exception, SystemExit) as error:
        raise InvalidArgument(f"the target {named}: the factory raised {type_and_place(error)}") from error
    if not all(callable(getattr(made, method, None)) for method in ("add", "search")):
        raise InvalidArgument(f"{named}: the factory returned {quoted(made)}; want `add` and `search`")
    return made
