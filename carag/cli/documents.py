"""Look at documents, remove them or erase them for good: ``documents``, ``quarantine``, ``erase``, ``audit erasures``.

All are about whole documents; ``carag audit erase`` is about the private values of records.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from carag.cli import ask as asking
from carag.cli._files import opened_log, read_text, reader_of
from carag.cli._options import AsJson, BackendUrl, DryRun, Key, ReadableStore, Store, unembedded
from carag.cli._output import Exit, say, say_json, say_lines
from carag.cli.ask import AsOf, Entity, Narrowed, Principal, Purpose, Role, Subject, conditions
from carag.cli.audit_erase import refuse
from carag.cli.ingest import show_preview
from carag.errors import InvalidArgument, Refused
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from carag.audit import Record
    from carag.engine.erasing.documents import ErasureReport
    from carag.engine.listing import DocumentView


documents = typer.Typer(help="List, show and remove single documents of a store.", no_args_is_help=True)
quarantine = typer.Typer(help="List what cannot be found until it is mended.", no_args_is_help=True)

After = Annotated[
    str | None,
    typer.Option("--after", metavar="ID", help="Begin after this id, the last of the page before."),
]
Limit = Annotated[int, typer.Option(metavar="N", help="The most that one page shows, 1 to 400.")]


@documents.command("list")
def list_(
    store: Store,
    role: Role,
    purpose: Purpose,
    as_of: AsOf = None,
    entity: Entity = None,
    principal: Principal = None,
    subject: Subject = None,
    where: Narrowed = None,
    after: After = None,
    limit: Limit = 100,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """List the documents of which a session may use a passage, by id; this is on record.

    [dim]carag documents list --store store --role public --purpose read --where 'id!=plan.md'[/dim]
    """
    from carag.engine import Engine

    session = asking.session_of(role, purpose, as_of, subject, entity, principal, None)
    with Engine.open(store, **unembedded(backend)) as engine:
        page = engine.documents(session, where=conditions(where or ()), after=after, limit=limit)
    if as_json:
        say_json(page.to_json())
        return asking.exit_of(page.outcome)
    for one in page.documents:
        say(_described(one))
    _say_rest(page.documents, page.why, page.after, page.receipt.seq)
    return asking.exit_of(page.outcome)


@documents.command()
def show(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id of a document.")],
    store: Store,
    role: Role,
    purpose: Purpose,
    as_of: AsOf = None,
    entity: Entity = None,
    principal: Principal = None,
    subject: Subject = None,
    after: After = None,
    limit: Limit = 400,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """Show a document, and those of its passages that a session may use; this is on record.

    [dim]carag documents show plan.md --store store --role public --purpose read[/dim]
    """
    from carag.engine import Engine

    session = asking.session_of(role, purpose, as_of, subject, entity, principal, None)
    with Engine.open(store, **unembedded(backend)) as engine:
        found = engine.document(id_, session)
        page = engine.passages(id_, session, after=after, limit=limit)
    if as_json:
        texts = [{"chunk_id": one.chunk_id, "text": one.text} for one in page.passages]
        say_json({**page.to_json(), "documents": found.to_json()["documents"], "passages": texts})
        return asking.exit_of(page.outcome)
    for one in found.documents:
        say(_described(one))
    for passage in page.passages:
        say_lines(f"[{passage.chunk_id}]\n{passage.text}\n")
    _say_rest(page.passages, page.why, page.after, page.receipt.seq)
    return asking.exit_of(page.outcome)


@quarantine.command("list")
def list_quarantine(
    store: Store,
    role: Role,
    purpose: Purpose,
    subject: Subject = None,
    after: After = None,
    limit: Limit = 100,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """List the documents in quarantine, with the reason and what to mend, for those who may know what is hidden.

    [dim]carag quarantine list --store store --role compliance --purpose review[/dim]
    """
    from carag.engine import Engine

    with Engine.open(store, **unembedded(backend)) as engine:
        page = engine.quarantine(
            asking.session_of(role, purpose, None, subject, None, None, None), after=after, limit=limit
        )
    if as_json:
        say_json(page.to_json())
        return asking.exit_of(page.outcome)
    for one in page.quarantined:
        say(f"{visible_line(one.id)}: {one.code}: {visible_line(one.why)}")
        say(f"  to mend it, {one.mend}")
    _say_rest(page.quarantined, page.why, page.after, page.receipt.seq)
    return asking.exit_of(page.outcome)


def _described(one: DocumentView) -> str:
    told = ", ".join(f"{name} {value}" for name, value in one.stated.items() if name != "id")
    return visible_line(f"{one.id}: {told}" if told else one.id)


def _say_rest(shown: Sequence[object], why: str, after: str | None, record: int) -> None:
    if not shown:
        say(f"nothing to show ({why})")
    if after is not None:
        say(f"there is more: --after {quote(visible_line(after))}")
    say(f"on record: {record}", style="dim")


@documents.command()
def remove(
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID...", help="Ids as [b]carag ask[/b] prints them, such as plan.md."),
    ],
    store: Store,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Who removes them; recorded as a commitment.")
    ] = None,
    backend: BackendUrl = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> int:
    """Remove documents, and record that; their text stays for questions about the past.

    What a removed document superseded stays superseded. If any id is not in the store, nothing is removed.

    [dim]carag documents remove plan.md --store store --by anna[/dim]
    """
    from carag.engine import Engine

    if dry_run:
        with Engine.open(store, **unembedded(backend)) as engine:
            show_preview(engine.contents.preview(remove=ids), as_json=as_json)
        return Exit.OK
    with Engine.open(store, **unembedded(backend)) as engine:
        removed = engine.remove(ids, by=by)
    if as_json:
        say_json({"removed": removed})
    else:
        say(f"documents removed from {store}, on record: {removed}")
    return Exit.OK


def erase(
    store: Store,
    basis: Annotated[
        str,
        typer.Option(
            metavar="CODE",
            help="GDPR_17_1 or GDPR_5_1_E, under which answers that must be kept stay; GDPR_17_1_D or GDPR_17_1_E, "
            "under which only those on hold stay.",
        ),
    ],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="The person who does this; kept sealed.")],
    approver: Annotated[
        str | None, typer.Option(metavar="NAME", help="The second person, who approves it; kept sealed.")
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID...", help="Ids as [b]carag ask[/b] prints them, such as plan.md."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="More ids, one a line, in UTF-8.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the receipts there, and for each document a statement that shows it to be an erased one. "
            "Statements name the documents.",
        ),
    ] = None,
    admin: Annotated[
        str | None,
        typer.Option(metavar="URL", help="For a store in PostgreSQL: the administrator that set it up."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would be erased and what would stay.")
    ] = False,
    backend: BackendUrl = None,
    as_json: AsJson = False,
) -> int:
    """Erase documents for good, on record, with all that was made of them and the answers that cite them.

    If any id is not in the store, nothing is erased. Earlier receipts still verify. Copies made before, such as
    backups, are out of reach: the last line names them.

    [dim]carag erase memo.md --store store --basis GDPR_17_1 --by "D. Po" --approver "C. Co" --dry-run[/dim]
    """
    from carag.engine import Engine

    if out is not None and not dry_run:
        _prepare(out)
    wanted = [*(ids or ()), *(_listed(file) if file is not None else ())]
    with Engine.open(store, **unembedded(backend)) as engine:
        done = engine.erase(wanted, basis=basis, by=by, approver=approver, dry_run=dry_run, admin=admin)
    if out is not None:
        _keep(done, out)
    if as_json:
        say_json(_json(done, dry_run))
    else:
        _show(done, store, dry_run)
    return Exit.OK


def erasures(
    store: ReadableStore,
    key: Key = None,
    document: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="ID",
            help="Print the statement that this document was erased, for [b]carag verify --erased[/b]. It is opened on "
            "record; needs --role, --actor and --why.",
        ),
    ] = None,
    role: Annotated[
        str | None, typer.Option(metavar="R", help="[b]auditor[/b] or [b]privacy_officer[/b].")
    ] = None,
    actor: Annotated[
        str | None, typer.Option(metavar="NAME", help="The person who asks; kept sealed.")
    ] = None,
    why: Annotated[str | None, typer.Option(metavar="CODE", help="The purpose, as a code.")] = None,
    as_json: AsJson = False,
) -> int:
    """List the erasures of documents, newest first; none of them tells which documents they were.

    [dim]carag audit erasures --store store[/dim]
    [dim]carag audit erasures --store store --id memo.md --role auditor --actor "E. Ve" --why REQ-7 > memo.json[/dim]
    """
    if document is not None:
        return _statement(store, document, role, actor, why)
    if role or actor or why:
        raise InvalidArgument("--role, --actor and --why are for a statement; add --id, or leave them out")
    from carag.audit.auditor.find import find

    with reader_of(store, key) as reader:
        found = [_told(one) for _, one in find(reader, wanted={"kind": "documents"}) if one is not None]
        reader.check_unchanged()
    if as_json:
        say_json(found)
        return Exit.OK
    for one in found:
        _show_one(one)
    say(f"erasures of documents: {len(found)}", style="dim")
    return Exit.OK


def _statement(store: Path, document: str, role: str | None, actor: str | None, why: str | None) -> int:
    from carag.audit import erasure_statement

    if not (role and actor and why):
        raise InvalidArgument(
            "--id opens what is sealed, on record; add --role, --actor, who asks, and --why, for what"
        )
    with opened_log(store) as log:
        try:
            said = erasure_statement(log, document, role=role, actor=actor, why=why)
        except Refused as refused:
            return refuse(refused)
    say_lines(said.to_bytes().decode())
    return Exit.OK


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_empty = not any(folder.iterdir())
    except OSError as error:
        raise InvalidArgument(f"cannot make {folder}: {error.strerror}; name a new directory") from error
    if not is_empty:
        raise InvalidArgument(f"{folder} holds files; name a new or an empty directory")


def _listed(file: Path) -> list[str]:
    lines = read_text(file, "name a file of ids, one a line").splitlines()
    return [line for line in lines if line.strip()]


def _keep(done: ErasureReport, folder: Path) -> None:
    """Write ``receipt-17.json``, and for each of its documents ``erased-17-1.json``, ``erased-17-2.json``, ..."""
    from carag.audit.receipts.receipt import write_receipt

    for receipt in done.receipts:
        receipt.write(folder / f"receipt-{receipt.seq}.json")
        about = [one for one in done.statements if one.record == receipt.seq]
        for number, one in enumerate(about, start=1):
            write_receipt(folder / f"erased-{receipt.seq}-{number}.json", one.to_bytes())


def _kept(done: ErasureReport) -> list[dict[str, Any]]:
    return [{"record": seq, "why": why} for seq, why in zip(done.kept, done.reasons, strict=True)]


def _json(done: ErasureReport, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "records": [one.seq for one in done.receipts],
        "documents": done.documents,
        "passages": done.passages,
        "answers": list(done.answers),
        "kept": _kept(done),
        "beyond": list(done.beyond),
        "statements": [one.to_json() for one in done.statements],
    }


def _show(done: ErasureReport, store: Path, dry_run: bool) -> None:
    erased, kept = ("to erase", "to keep") if dry_run else ("erased", "kept")
    seqs = ", ".join(str(one.seq) for one in done.receipts)
    ends = "nothing was changed" if dry_run else f"on record: {seqs}"
    say(f"documents {erased} from {store}: {done.documents}, passages: {done.passages}; {ends}")
    answers = f", in records {', '.join(map(str, done.answers))}" if done.answers else ""
    say(f"answers {erased} because they cite these: {len(done.answers)}{answers}")
    say(f"answers {kept} although they cite these: {len(done.kept)}")
    for one in _kept(done):
        say(f"  in record {one['record']}: {one['why']}")
    say(f"out of reach, and may still hold something: {', '.join(done.beyond)}")


def _told(record: Record) -> dict[str, Any]:
    from carag.audit.auditor.describe import instant

    event: Any = record.event.to_json()
    return {
        "record": record.seq,
        "erased": instant(record.committed),
        "basis": event["basis"],
        "documents": len(event["ids"]),
        **{name: event[name] for name in ("passages", "answers", "kept", "places", "beyond")},
    }


def _show_one(said: dict[str, Any]) -> None:
    counts = ", ".join(f"{name} {said[name]}" for name in ("documents", "passages", "answers"))
    when = said["erased"][:19].replace("T", " ")
    say(f"record {said['record']}  {when}  {said['basis']}  {counts}, answers kept {len(said['kept'])}")
    say(f"  from {', '.join(said['places'])}; out of reach: {', '.join(said['beyond'])}")
