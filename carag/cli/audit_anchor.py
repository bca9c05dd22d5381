"""Have the newest checkpoint of a log confirmed outside, once: ``carag audit anchor``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from carag.cli._files import opened_log
from carag.cli._options import AsJson, Store, TrustedWitnesses, TsaRoots
from carag.cli._output import Exit, say, say_json, warn
from carag.errors import CorruptFile

if TYPE_CHECKING:
    from carag.audit.anchors.evidence import Evidence
    from carag.audit.anchors.exposure import Exposure


def anchor(
    store: Store,
    to: Annotated[
        list[str],
        typer.Option(
            "--to",
            metavar="ANCHOR",
            help="[b]s3://bucket/prefix[/b], [b]tsa:URL[/b] or [b]witness:URL[/b]; can be repeated.",
        ),
    ],
    policy: TrustedWitnesses = None,
    tsa_roots: TsaRoots = None,
    retain_days: Annotated[
        int,
        typer.Option("--retain-days", metavar="N", help="How many days S3 locks the object; irrevocable."),
    ] = 2557,
    region: Annotated[str | None, typer.Option(metavar="R", help="The bucket's AWS region.")] = None,
    as_json: AsJson = False,
) -> int:
    """Have the newest checkpoint of the log confirmed outside, and keep the evidence in the store.

    Exit codes: 0 every anchor named confirmed the checkpoint, 1 an anchor holds another history signed by this log, 2
    an anchor could not be reached.

    [dim]carag audit anchor --store store --to s3://audit-anchors/prod[/dim]
    """
    from carag.audit.anchors.anchoring import Anchoring
    from carag.audit.anchors.targets import anchors_named

    anchors = anchors_named(to, policy=policy, tsa_roots=tsa_roots, retain_days=retain_days, region=region)
    with opened_log(store) as log:
        try:
            anchoring = Anchoring(log, anchors, store / "anchors")
            confirmed = anchoring.anchor(always=True)
        except CorruptFile as error:
            _report((), None, str(error), as_json=as_json)
            return Exit.TAMPERED
        exposure = anchoring.exposure()
    _report(confirmed, exposure, None, as_json=as_json)
    return Exit.CANNOT_TELL if exposure.failures or len(confirmed) < len(anchors) else Exit.OK


def _report(
    confirmed: tuple[Evidence, ...], exposure: Exposure | None, wrong: str | None, *, as_json: bool
) -> None:
    failures = exposure.failures if exposure else ()
    if as_json:
        report = {
            "confirmed": [
                {
                    "kind": one.kind,
                    "place": one.place,
                    "seen": one.seen,
                    "size": one.tree.size,
                    "file": one.name,
                }
                for one in confirmed
            ],
            "contradiction": wrong,
            "exposed": exposure and {"records": exposure.records, "seconds": round(exposure.seconds)},
            "failures": dict(failures),
        }
        say_json(report)
        return
    for one in confirmed:
        say(f"confirmed  {one.tree.size} records  {one.kind}  {one.place}")
    for place, reason in failures:
        warn(f"not confirmed  {place}: {reason}")
    if wrong:
        warn(f"TAMPERED  {wrong}")
    if exposure:
        say(f"exposed  {exposure.records} records, {exposure.seconds:.0f} s ({exposure.standing})")
