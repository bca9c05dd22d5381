"""Bring an index that is there already into a store: ``carag adopt``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from carag.cli._options import (
    AsJson,
    BackendUrl,
    EmbedderName,
    ProfileName,
    Store,
    model_settings,
    store_settings,
)
from carag.cli._output import Exit, say, say_ids, say_json
from carag.cli.ingest import show_problems
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from carag.adopting import AdoptReport


def adopt(
    context: typer.Context,
    address: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="[b]postgresql://…?table=NAME[/b] (pgvector), [b]chroma:FOLDER[/b], [b]qdrant:FOLDER[/b], "
            "[b]qdrant://HOST:PORT/COLLECTION[/b], [b]lancedb:FOLDER[/b] or [b]faiss:FILE?rows=FILE.jsonl[/b]; after a "
            "folder, [b]?name=[/b] chooses a collection. Only read, never written to.",
        ),
    ],
    store: Store,
    profile: ProfileName = None,
    embedder: EmbedderName = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML: which fields are id, text, vector and document, and which state the profile's facts. By "
            "default id, text and vector, and all others are facts.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read everything, say what would be stored, and store nothing.")
    ] = False,
    remove_vanished: Annotated[
        bool,
        typer.Option(
            "--remove-vanished",
            help="Withdraw documents that an earlier run took from here and that are gone; otherwise they are listed.",
        ),
    ] = False,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """Adopt the vectors and texts of an existing index as they are, and label them by the profile's rules.

    Nothing is embedded again. What cannot be labelled is quarantined, where no policy reaches it, and listed. Run it
    again to take over what is new or changed. The model that made the vectors is [b]--embedder[/b], or the mapping's
    [b]model[/b]; without an embedder the store cannot answer questions until it is opened with one.

    [dim]carag adopt faiss:index.faiss?rows=rows.jsonl --profile generic --mapping mapping.toml --store store[/dim]
    """
    from carag.adopting import Mapping, source_of, spooled, tried
    from carag.adopting import adopt as adopted
    from carag.engine import Engine
    from carag.engine.corpus import has_store, profile_of
    from carag.engine.directory import undone_if_empty
    from carag.policy import Profile

    read = Mapping.read(mapping)
    settings = model_settings(context, store, embedder=embedder) | store_settings(backend=backend)
    with source_of(address, read.wanted) as source, spooled(source, read) as spool:
        model = read.model or _model_of(settings.get("embedder"))
        if dry_run:
            given = profile_of(store) if has_store(store) else Profile.open(profile or "edgar")
            report = tried(spool, given.vocabulary, model)
        else:
            settings.setdefault("embedder", _stand_in(model, spool.dim))
            with undone_if_empty(store), Engine.open(store, profile=profile, **settings) as engine:
                report = adopted(engine, spool, model, remove_vanished=remove_vanished)
    say_json(report.to_json()) if as_json else _show(report, is_tried=dry_run)
    return Exit.OK if report.filings or report.vanished else Exit.BAD_INPUT


def _model_of(embedder: Any) -> str:
    if embedder is None:
        raise InvalidArgument(
            'which model made the vectors is not stated; give --embedder, or a --mapping with model = "NAME"'
        )
    return str(embedder.name)


def _stand_in(model: str, dim: int) -> Any:
    from carag.retrieval import AdoptedEmbedder

    if not dim:
        raise InvalidArgument("the source has no row with a usable vector; nothing was stored")
    return AdoptedEmbedder(model, dim)


def _show(report: AdoptReport, *, is_tried: bool) -> None:
    would = "would be " if is_tried else ""
    say(
        f"{report.rows} rows: {report.added} documents {would}added, {report.changed} changed, {report.unchanged} "
        f"unchanged, with {report.chunks} passages; none {would}embedded."
    )
    for reason, count in sorted(report.quarantined.items()):
        say(f"  quarantined {count:>6}  {reason}")
    if report.vanished:
        say_ids(
            f"{len(report.vanished)} are gone from the source, {report.removed} of them withdrawn:",
            {"gone": report.vanished},
        )
    show_problems(report.problems)
