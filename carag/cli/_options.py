"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from carag.cli._files import read_text

if TYPE_CHECKING:
    from carag.cli._configuration import Configuration


Store = Annotated[
    Path,
    typer.Option(
        "--store", metavar="DIR", envvar="CARAG_STORE", help="The store: text, index and audit log."
    ),
]
ReadableStore = Annotated[
    Path,
    typer.Option(
        "--store",
        metavar="DIR",
        envvar="CARAG_STORE",
        help="The store, or a directory with a copy of its audit.db.",
    ),
]
"""For commands that only read the log, which an auditor may run on a copy."""
ProfileName = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME_OR_DIR",
        help="For a new store: [b]edgar[/b] (default), [b]circulars[/b], [b]generic[/b], [b]clinical[/b], or a folder "
        "with profile.toml and roles.toml.",
    ),
]
EmbedderName = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="NAME",
        envvar="CARAG_EMBEDDER",
        help="[b]minilm[/b] (default of a new store), [b]wordllama[/b], or [b]MODULE:FACTORY[/b], your own embedder. "
        "A store keeps the embedder that it was made with.",
    ),
]
RankerName = Annotated[
    str | None,
    typer.Option(
        "--ranker",
        metavar="NAME",
        envvar="CARAG_RANKER",
        help="How passages are found: [b]fused-1[/b] by similarity, by words and by what the question names; "
        "[b]dense[/b] by similarity alone. Append [b]+mmr-0.7-20[/b] to choose, among the best 20, those that "
        "repeat each other least. Default: the profile's.",
    ),
]
PassageReaderName = Annotated[
    str | None,
    typer.Option(
        "--passage-reader",
        metavar="NAME",
        envvar="CARAG_PASSAGE_READER",
        help="What reads the first passages, and declines what they are unlikely to answer: [b]carag-reader-1[/b], "
        "[b]onnx:FOLDER[/b] or [b]MODULE:FACTORY[/b]. Default: none.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="VKEY_OR_FILE",
        help="The log's public key, from a source you trust. Default: the file [b]vkey[/b] in DIR.",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Say what would be added, changed, closed and removed; write nothing."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
AsJsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object per line instead of text.")]
ClaimedRole = Annotated[
    str, typer.Option(metavar="R", help="The role claimed: [b]auditor[/b] or [b]privacy_officer[/b].")
]
Retain = Annotated[
    str | None,
    typer.Option(
        metavar="CLASS",
        help="How long records must be kept: [b]ai6m[/b], [b]fin5y[/b], [b]fin6y[/b], [b]fin7y[/b] (default).",
    ),
]
NotBefore = Annotated[
    Path | None,
    typer.Option(
        "--not-before",
        metavar="FILE",
        help="A checkpoint or receipt kept elsewhere: a store that was rolled back behind it does not open.",
    ),
]
BackendUrl = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="URL",
        help="Where vectors are searched: [b]native[/b], in an index file of the store, or a server, such as "
        "[b]postgresql://ROLE@HOST/DATABASE[/b]. "
        "Default: native; a store whose rows are elsewhere does not open.",
    ),
]
TrustedWitnesses = Annotated[
    Path | None,
    typer.Option(
        "--policy",
        metavar="FILE",
        help="The witnesses whose cosignatures are trusted (c2sp.org/tlog-policy).",
    ),
]
TsaRoots = Annotated[
    Path | None,
    typer.Option(
        "--tsa-roots", metavar="FILE", help="PEM certificates of the timestamp authorities to trust."
    ),
]


def store_settings(
    retain: str | None = None,
    not_before: Path | None = None,
    backend: str | None = None,
) -> dict[str, Any]:
    """Return the options that were given, as arguments for ``Engine.open``."""
    given: dict[str, Any] = {"retain": retain, "backend": backend}
    if not_before is not None:
        given["not_before"] = read_text(not_before)
    return {name: value for name, value in given.items() if value is not None}


def unembedded(backend: str | None = None) -> dict[str, Any]:
    """Return the arguments of ``Engine.open`` for a store that is there, where nothing has to be embedded."""
    from carag.engine import NO_EMBEDDER

    return {"create": False, "embedder": NO_EMBEDDER, **store_settings(backend=backend)}


def model_settings(
    context: typer.Context,
    store: Path,
    *,
    embedder: str | None = None,
    generator: str | None = None,
    ranker: str | None = None,
    reranker: str | None = None,
    passage_reader: str | None = None,
) -> dict[str, Any]:
    """Return the models named, as arguments for ``Engine.open``; ``MODULE:FACTORY`` is imported from outside the store.

    Names come from the command line, the environment and ``carag.toml`` alone, never from a store. If none of them
    names an embedder, the one that ``carag trust`` pinned to the store is used.
    """
    from carag.cli._trusted import trusted_embedder

    configuration: Configuration = context.obj
    given: dict[str, Any] = {}
    source = context.get_parameter_source("embedder")
    if source is not None and source.name == "DEFAULT_MAP" and not configuration.names(store):
        embedder = None  # the file's embedder belongs to the file's store; another store has its own
    if embedder is not None:
        given["embedder"] = configuration.made("embedder", embedder, not_in=store)
    elif (pinned := trusted_embedder(store)) is not None:
        given["embedder"] = pinned
    if generator is not None:
        given["generator"] = configuration.made("generator", generator, not_in=store)
    if ranker is not None:
        given["ranker"] = ranker
    if reranker is not None:
        given["reranker"] = configuration.made("reranker", reranker, not_in=store)
    if passage_reader is not None:
        given["reader"] = configuration.made("passage_reader", passage_reader, not_in=store)
    return given
