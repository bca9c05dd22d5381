"""Answer questions and explain passages: ``carag ask``, ``carag explain``, and both over HTTP: ``carag serve``."""

from __future__ import annotations

import gc
import re
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from carag.cli._options import (
    AsJson,
    BackendUrl,
    EmbedderName,
    NotBefore,
    PassageReaderName,
    RankerName,
    Retain,
    Store,
    model_settings,
    store_settings,
)
from carag.cli._output import Exit, box, columns, flush, say, say_json, warn
from carag.errors import AuditUnavailable, InvalidArgument, StoreLocked
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date, datetime

    from carag.audit import Outcome
    from carag.engine import Answer, Explanation
    from carag.policy import Session
    from carag.retrieval import Withheld


_SETTINGS: Final = (
    *("embedder", "generator", "ranker", "reranker", "passage_reader"),
    *("retain", "not_before", "backend"),
)
"""Options that decide how an engine is opened."""
_CONDITION: Final = re.compile(r"([^<>=!]+)(<=|>=|!=|=|<|>)(.+)", re.DOTALL)
_BOUNDS: Final = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}

Role = Annotated[str, typer.Option(metavar="R", help="The role that asks, such as [b]buy_side[/b].")]
Purpose = Annotated[str, typer.Option(metavar="P", help="The purpose, such as [b]invest[/b].")]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="D",
        help="Answer from what was public at this time: a date (its end, in the profile's time zone) or a time with "
        "zone. Default: now.",
    ),
]
Entity = Annotated[
    list[int] | None,
    typer.Option(
        "--entity",
        metavar="CIK",
        help="Use only passages about this company or person; given several times, about those and no others, or for "
        "an access request about any of them. Can be repeated.",
    ),
]
Principal = Annotated[
    list[str] | None,
    typer.Option(
        "--principal",
        metavar="KIND:ID",
        help="A principal of the asker, for documents shared with certain people only: [b]user:ana[/b] or "
        "[b]group:treasury[/b]. Can be repeated.",
    ),
]
Narrowed = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="FIELD=VALUE",
        help="Only documents with this metadata; also [b]!=[/b], and for numbers and dates [b]<[/b], [b]<=[/b], "
        "[b]>[/b] and [b]>=[/b], as in [b]'year>=2024'[/b]. Several values of one field are alternatives; all fields "
        "must match.",
    ),
]
GeneratorName = Annotated[
    str,
    typer.Option(
        "--generator",
        metavar="NAME",
        envvar="CARAG_GENERATOR",
        help="[b]extractive[/b] quotes; [b]local[/b] or [b]local:PATH[/b] runs a GGUF model here; "
        "[b]bedrock:MODEL_ID[/b] asks Amazon Bedrock; [b]MODULE:FACTORY[/b] names your own.",
    ),
]
RerankerName = Annotated[
    str | None,
    typer.Option(
        "--reranker",
        metavar="NAME",
        envvar="CARAG_RERANKER",
        help="The reranker, which puts the passages found in order: a name defined in [b]carag.toml[/b], or "
        "[b]MODULE:FACTORY[/b].",
    ),
]
Subject = Annotated[
    str | None, typer.Option(metavar="S", help="Who asks; recorded only as a salted commitment.")
]
BreakGlass = Annotated[
    str | None,
    typer.Option(
        "--break-glass",
        metavar="P",
        help="Break the glass, for this question alone: ask for this purpose instead, whose cell opens only so. Needs "
        "[b]--subject[/b] and [b]--reason[/b].",
    ),
]
Reason = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Why the glass is broken; recorded only as a salted commitment."),
]
Approver = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The second person who approves it, where the cell asks for two."),
]
Conversation = Annotated[
    str | None,
    typer.Option(
        "--conversation",
        "--session",
        metavar="ID",
        help="The conversation that the question belongs to; recorded only as a salted commitment. With "
        '[b]--subject[/b], a follow-up such as "And the year before?" is read after the earlier questions of the same '
        "subject, role and purpose.",
    ),
]


def ask(
    context: typer.Context,
    question: Annotated[
        str, typer.Argument(help="A question in plain words. It can only tighten the policy.")
    ],
    store: Store,
    role: Role,
    purpose: Purpose,
    as_of: AsOf = None,
    subject: Subject = None,
    conversation: Conversation = None,
    entity: Entity = None,
    principal: Principal = None,
    where: Narrowed = None,
    break_glass: BreakGlass = None,
    reason: Reason = None,
    approver: Approver = None,
    generator: GeneratorName = "extractive",
    ranker: RankerName = None,
    reranker: RerankerName = None,
    passage_reader: PassageReaderName = None,
    embedder: EmbedderName = None,
    receipt: Annotated[
        Path | None, typer.Option("--receipt", metavar="FILE", help="Write the receipt of this answer here.")
    ] = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """Answer a question from what this role may use for this purpose.

    Exit codes: 0 answered, 3 declined (too little admissible evidence), 4 refused (this role may not ask for this
    purpose).

    [dim]carag ask "What drove revenue?" --store store --role buy_side --purpose invest --receipt r.json[/dim]
    """
    from carag.engine import Engine

    session, narrowed = (
        session_of(role, purpose, as_of, subject, entity, principal, conversation),
        conditions(where or ()),
    )
    breaking = _breaking(break_glass, reason, approver)
    settings = store_settings(retain, not_before, backend)
    settings |= model_settings(
        context,
        store,
        embedder=embedder,
        generator=generator,
        ranker=ranker,
        reranker=reranker,
        passage_reader=passage_reader,
    )
    try:
        with Engine.open(store, create=False, **settings) as engine:
            under = session if breaking is None else engine.break_glass(session, **breaking)
            answer, profile = engine.ask(question, under, where=narrowed), engine.profile.name
    except StoreLocked as locked:
        answer, profile = _asked_of_holder(context, store, locked, question, session, narrowed, breaking)
    if receipt is not None:
        _write_receipt(answer, receipt)
    if as_json:
        say_json(answer.to_json())
    else:
        _show_answer(answer, receipt)
        if answer.why in ("UNKNOWN_ROLE", "UNKNOWN_PURPOSE"):  # such as a role of another store
            say(
                f"{store} is a store of the profile {profile}; carag policy show --store {store} lists its roles"
            )
    return exit_of(answer.outcome)


def explain(
    context: typer.Context,
    chunk: Annotated[str, typer.Argument(metavar="CHUNK", help="A chunk id: document id and ordinal.")],
    store: Store,
    role: Role,
    purpose: Purpose,
    as_of: AsOf = None,
    entity: Entity = None,
    principal: Principal = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """Say why a passage is admissible or hidden for a session.

    Names the rule that hides it, the regulation behind the rule, what in the filing caused it, and who can lift it and
    how. A role that must not know of hidden passages gets the same answer for a hidden chunk as for one that does not
    exist (exit code 3).

    [dim]carag explain 0000002488-23-000076:00003 --store store --role compliance --purpose surveil[/dim]
    """
    from carag.engine import NO_EMBEDDER, Engine

    session = session_of(role, purpose, as_of, None, entity, principal, None)
    try:
        with Engine.open(
            store, create=False, embedder=NO_EMBEDDER, **store_settings(retain, not_before, backend)
        ) as engine:
            explanation = engine.explain(chunk, session)
    except StoreLocked as locked:
        from carag.service.wire import ExplanationBody, explanation_of

        said = _of_holder(context, store, locked, chunk, session, operation="explain")
        explanation = explanation_of(ExplanationBody.model_validate_json(said))
    if as_json:
        say_json(explanation.to_json())
    else:
        _show_explanation(explanation)
    return exit_of(explanation.outcome)


def _settings_from(context: typer.Context, given: Path | None) -> Path | None:
    """Apply a ``--config`` given after the command as if it were given before it."""
    from carag.cli._configuration import Configuration

    if given is not None:
        context.obj = Configuration(given)
        context.default_map = {**context.obj.lookups()}
    return given


def serve(
    context: typer.Context,
    store: Store,
    config: Annotated[  # noqa: ARG001 - its callback reads it, before the options that it may set
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            is_eager=True,
            callback=_settings_from,
            help="The settings file; its table [b]\\[service][/b] says whose tokens are accepted and what they grant.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=65535, help="The port to listen on; 0 picks a free one."),
    ] = None,
    generator: GeneratorName = "extractive",
    ranker: RankerName = None,
    reranker: RerankerName = None,
    passage_reader: PassageReaderName = None,
    embedder: EmbedderName = None,
    retain: Retain = None,
    not_before: NotBefore = None,
    backend: BackendUrl = None,
) -> int:
    """Answer questions over HTTP, each in the session that its signed token grants, until SIGTERM or Ctrl+C.

    A second listener gives operators readiness and metrics. The log goes to standard error, without content. Meanwhile
    this process also answers [b]carag ask[/b] and [b]carag explain[/b] of this store.

    [dim]carag serve --store store --config office.toml --port 8321[/dim]
    """
    from carag.extras import require

    require("carag serve", "service")
    from carag.engine import Engine
    from carag.service.logs import shown
    from carag.service.owner import IS_THERE, OwnerSocket
    from carag.service.service import Service
    from carag.service.serving import serve as run

    given = {} if port is None else {"port": port}
    settings = context.obj.service().with_options(given)
    opening = store_settings(retain, not_before, backend)
    opening |= model_settings(
        context,
        store,
        embedder=embedder,
        generator=generator,
        ranker=ranker,
        reranker=reranker,
        passage_reader=passage_reader,
    )

    def started(first: int, second: int) -> None:
        say(
            f"serving {store} on {settings.listen}, port {first}; "
            f"metrics on {settings.operations_listen}, port {second}"
        )
        if settings.slots is None:
            warn("slots are off: the time that an answer takes may reveal that something is hidden")
        flush()
        # The objects made at the start live until the end. A full collection would visit all 93,000, which took 52 ms:
        # longer than a slot, so that the current request would be late.
        gc.collect()
        gc.freeze()

    with (
        shown(settings.log),
        Engine.open(store, create=False, **opening) as engine,
        OwnerSocket(engine, store, _words(context, all_of_them=True)) if IS_THERE else nullcontext(),
    ):
        run(Service(engine, store, settings), started=started)
    return Exit.OK


def _words(context: typer.Context, *, all_of_them: bool = False) -> dict[str, object]:
    """Return the engine settings of a command: those that were given, or all of them."""
    found: dict[str, object] = {}
    for name in _SETTINGS:
        source = context.get_parameter_source(name)
        if name in context.params and (all_of_them or (source is not None and source.name != "DEFAULT")):
            value = context.params[name]
            found[name] = None if value is None else str(value)
    return found


def _of_holder(
    context: typer.Context,
    store: Path,
    locked: StoreLocked,
    text: str,
    session: Session,
    *,
    operation: Literal["ask", "explain"],
    where: Mapping[str, Any] | None = None,
    breaking: Mapping[str, str] | None = None,
) -> bytes:
    """Return the answer of the service that holds the store; raise ``locked`` if no service listens there."""
    from carag.service.owner import asked_there

    found = asked_there(
        store, operation, text, session, where=where, breaking=breaking, stated=_words(context)
    )
    if found is None:
        raise locked
    warn("a running service holds the store; the question was sent to it")
    return found


def _asked_of_holder(
    context: typer.Context,
    store: Path,
    locked: StoreLocked,
    question: str,
    session: Session,
    where: dict[str, Any],
    breaking: Mapping[str, str] | None,
) -> tuple[Answer, str]:
    """Ask the service that holds the store; return its answer and the name of its profile."""
    from carag.service.wire import AnswerBody, answer_of

    class AnswerOfHolder(AnswerBody):
        profile: str

    found = _of_holder(
        context, store, locked, question, session, operation="ask", where=where, breaking=breaking
    )
    said = AnswerOfHolder.model_validate_json(found)
    return answer_of(said), said.profile


def session_of(
    role: str,
    purpose: str,
    as_of: str | None,
    subject: str | None,
    entities: list[int] | None,
    principals: list[str] | None,
    conversation: str | None,
) -> Session:
    """Make a session from what a command was given."""
    from carag.policy import Session

    return Session(
        role=role,
        purpose=purpose,
        subject=subject,
        as_of=_moment(as_of),
        allow_entities=frozenset(entities) if entities else None,
        principals=frozenset(principals or ()),
        conversation=conversation,
    )


def _breaking(purpose: str | None, reason: str | None, approver: str | None) -> dict[str, Any] | None:
    """Return the words of ``Engine.break_glass``; None if the glass is not to be broken."""
    if (purpose is None) != (reason is None) or (purpose is None and approver is not None):
        raise InvalidArgument(
            "--break-glass and --reason belong together, and --approver to both; give both or neither"
        )
    if purpose is None:
        return None
    return {"purpose": purpose, "reason": reason} | ({} if approver is None else {"approver": approver})


def conditions(given: Iterable[str]) -> dict[str, Any]:
    """Read conditions such as ``year>=2024`` as :class:`carag.policy.Where` takes them."""
    found: dict[str, Any] = {}
    for one in given:
        said = _CONDITION.fullmatch(one)
        if said is None:
            raise InvalidArgument(
                f"--where is {quoted(one)}; want FIELD=VALUE, or != < <= > >= in place of ="
            )
        field, sign, value = said.groups()
        if sign == "=":
            stated = found.setdefault(field, [])
            is_clear = isinstance(stated, list)
            if is_clear:
                stated.append(value)
        elif sign == "!=":
            stated = found.setdefault(field, {})
            is_clear = isinstance(stated, dict)
            if is_clear:
                stated.setdefault("not", []).append(value)
        else:
            stated = found.setdefault(field, {})
            is_clear = isinstance(stated, dict) and stated.setdefault(_BOUNDS[sign], value) == value
        if not is_clear:
            raise InvalidArgument(
                f"--where contradicts itself about {quoted(field)}; give either values or one range"
            )
    return found


def _moment(text: str | None) -> datetime | date | None:
    from carag.policy import parse_moment

    if text is None:
        return None
    try:
        return parse_moment(text)
    except InvalidArgument:
        raise InvalidArgument(
            f"--as-of is {text!r}; want a date such as 2025-05-01, or a time such as 2025-05-01T16:30:00-04:00"
        ) from None


def exit_of(outcome: Outcome) -> Exit:
    """Return the exit code of an outcome."""
    from carag.audit import Outcome

    return {Outcome.ANSWER: Exit.OK, Outcome.DECLINE: Exit.DECLINED}.get(outcome, Exit.REFUSED)


def _write_receipt(answer: Answer, path: Path) -> None:
    try:
        answer.receipt.write(path)
    except OSError as error:
        # The record is safe in the log; only this copy of its proof could not be written.
        raise AuditUnavailable(f"cannot write the receipt {path}: {error.strerror}") from error


def _show_answer(answer: Answer, receipt: Path | None) -> None:
    from carag.audit import Outcome

    box(answer.text, title=answer.outcome.value)
    if answer.left_out:
        say(answer.left_out_said)
    if answer.citations:
        # A filing has a column for each fact; any other document is named as its profile says.
        if any(cited.form for cited in answer.citations):
            headings, wraps = ["", "chunk", "form", "document", "filer", "filed"], "filer"
            cells = [
                [one.chunk_id, one.form, one.document, one.company, one.filed] for one in answer.citations
            ]
        else:
            headings, wraps = ["", "chunk", "source"], "source"
            cells = [[one.chunk_id, one.source] for one in answer.citations]
        numbers = (f"[{one.number}]" for one in answer.citations)
        columns(headings, [[number, *row] for number, row in zip(numbers, cells, strict=True)], wraps=wraps)
    if answer.nearest:
        say("Nearest passages that you may use:")
        for one in answer.nearest:
            say(f"  {one.source or one.document} ({one.chunk_id}), similarity {one.similarity:.3f}")
    if answer.understood:
        say(f"Read: {answer.understood}")
    if answer.asked_day is not None:
        say(answer.asked_day.described())
    if answer.basis:
        say(answer.basis)
    for later in answer.superseded:
        say(later.described())
    _show_withheld(answer.withheld)
    if answer.outcome is not Outcome.REFUSE and answer.gate:
        say(answer.gate, style="dim")
    if answer.glass is not None:
        say(f"The glass was broken for this answer: record {answer.glass} in the audit log says why.")
    where = f"receipt {receipt}" if receipt else "no receipt was written (--receipt FILE writes one)"
    say(f"record {answer.receipt.seq} in the audit log; {where}", style="dim")
    if answer.follows is not None:
        say(
            f"record {answer.follows.seq} in the audit log says what has changed about the documents since",
            style="dim",
        )


def _show_withheld(withheld: Withheld | None) -> None:
    if withheld is None:
        return
    say("withheld from this session:", style="dim")
    for kind in withheld.kinds:
        say(f"  {kind.text}", style="dim")
    for hidden in withheld.hidden:
        why = "; ".join(reason.code for reason in hidden.reasons)
        say(f"  hidden neighbour {hidden.chunk_id}: {why}")


def _show_explanation(explanation: Explanation) -> None:
    say(explanation.text)
    for one in explanation.reasons:
        on = f" [{', '.join(one.basis)}]" if one.basis else ""
        say(f"  {one.reason.code}{on}: {one.reason.text}")
        say(f"    rules: {one.regulation or 'no regulation'}")
        say(f"    lifted by: {one.lift}")
    for cause in explanation.causes:
        say(f"  {cause}", style="dim")
