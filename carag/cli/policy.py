"""Show, check and compare policy tables, and label filings by the rules: ``carag policy``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from carag.cli._files import table_in
from carag.cli._options import (
    AsJson,
    AsJsonLines,
    BackendUrl,
    EmbedderName,
    ProfileName,
    Store,
    model_settings,
    unembedded,
)
from carag.cli._output import Exit, say, say_ids, say_json, say_lines, warn
from carag.errors import InvalidArgument
from carag.limits import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from carag.engine.what_if.documents import CellEffect, Effect
    from carag.engine.what_if.groups import GroupsEffect
    from carag.policy import Cell, Mask, PolicyTable
    from carag.policy.diff import CellChange


app = typer.Typer(help="Show, check and change the policy, and label filings by it.", no_args_is_help=True)


@app.command()
def show(
    role: Annotated[str | None, typer.Argument(metavar="ROLE", help="Default: all roles.")] = None,
    purpose: Annotated[
        str | None, typer.Argument(metavar="PURPOSE", help="Default: all its purposes.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile", metavar="NAME_OR_DIR", help="A profile, or its folder. Default: [b]edgar[/b]."
        ),
    ] = None,
    store: Annotated[
        Path | None, typer.Option("--store", metavar="DIR", help="Show the table in force in this store.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show what each role may use for which purpose, and the rules behind it.

    [dim]carag policy show buy_side invest[/dim]
    """
    table = _in_force(profile, store)
    cells = [cell for cell in table.cells if role in (None, cell.role) and purpose in (None, cell.purpose)]
    if not cells:
        known = ", ".join(f"{cell.role}/{cell.purpose}" for cell in table.cells)
        raise InvalidArgument(f"there is no cell {role}/{purpose or '*'}; want one of {known}")
    if as_json:
        say_json({"sha256": table.sha256, "cells": [_cell(cell) for cell in cells]})
        return Exit.OK
    for cell in cells:
        say(f"{cell.role}/{cell.purpose}  ({cell.regulation})")
        for pair, mask in zip(cell.masks, cell.compiled, strict=True):
            when = f"  when {pair.when}" if pair.when else ""
            say(f"  {_hex(mask)}{when}")
            for verb, names in (("requires", pair.required), ("forbids", pair.forbidden)):
                if names:
                    say(f"    {verb} {', '.join(names)}")
        terms = {
            "may know of hidden passages": cell.may_know_existence,
            "may look persons up by name": cell.personal_data,
            "may ask what was public then": "as_of" in cell.past,
            "may ask what was known then": "known_at" in cell.past,
            "needs an allow-list": cell.allow_list == "mandatory",
            "opens by breaking the glass": cell.break_glass is not None,
        }
        say(f"  {'; '.join(name for name, holds in terms.items() if holds) or 'no further rights'}")
    say(f"table {table.sha256}")
    return Exit.OK


@app.command()
def lint(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE_OR_DIR",
            help="A profile's folder, or a TOML file with a table of EDGAR's bits. Default: EDGAR's own table.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check a table for bits that no mask uses, roles without a cell, and masks that admit nothing, or nothing new.

    Exit codes: 0 nothing found, 65 something found, or not a table or profile.

    [dim]carag policy lint carag/profiles/generic[/dim]
    """
    from carag.policy import PolicyTable
    from carag.policy.lint import lint as findings_of

    table = PolicyTable.shipped() if path is None else table_in(path)
    findings = findings_of(table)
    if as_json:
        say_json({"sha256": table.sha256, "findings": [finding.to_json() for finding in findings]})
    else:
        for finding in findings:
            say(f"{finding.code}  {finding.where}: {finding.text}")
        say(f"{len(table.cells)} cells, {len(findings)} findings")
    return Exit.BAD_INPUT if findings else Exit.OK


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A profile's folder, or a table in TOML.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Another.")],
    as_json: AsJson = False,
) -> int:
    """Compare two profiles: which cells widen or tighten, and what the changed rules would open.

    [dim]carag policy diff old.toml carag/profiles/edgar/roles.toml[/dim]
    """
    before, after = table_in(old), table_in(new)
    changes, opened, widens = _compared(before, after)
    if as_json:
        tables = {"old": before.sha256, "new": after.sha256}
        said = {"changes": [change.to_json() for change in changes], "opened": opened}
        say_json({**tables, "widens": widens, **said})
        return Exit.OK
    _show(changes, opened)
    if widens:
        say("something becomes admissible that was not before")
    elif not changes:
        say("no cell differs")
    return Exit.OK


@app.command("what-if")
def what_if(
    context: typer.Context,
    new: Annotated[
        str,
        typer.Argument(
            metavar="NEW", help="A profile with the store's bits, or its folder: not in force yet."
        ),
    ],
    store: Store,
    groups: Annotated[
        Path | None,
        typer.Option("--groups", metavar="FILE", help="Groups to import, as for [b]carag groups import[/b]."),
    ] = None,
    last: Annotated[
        int, typer.Option("--last", metavar="N", min=0, help="Also judge the last N answers on record.")
    ] = 0,
    questions: Annotated[
        Path | None,
        typer.Option("--questions", metavar="FILE", help="Ask these under both policies, without a record."),
    ] = None,
    embedder: EmbedderName = None,
    as_json: AsJson = False,
) -> int:
    """List the stored documents that a change would open or close for each cell, by id; nothing is written.

    With --groups, also for each person and group, whatever the cell; with --last, the passages that past answers
    would not have had; with --questions, the passages that results would gain and lose. A line of that file is
    {"question": "…", "role": "…", "purpose": "…", "principals": ["user:…"]}; the last key may be left out.

    The labels that hold now are judged, whatever their audience, for sessions that add no restriction to their cell;
    where a cell needs an allow list, for one that names everything. With --json, all documents are named.

    [dim]carag policy what-if ./office --store store[/dim]
    """
    from carag.engine.contents import read_stated
    from carag.engine.corpus import open_corpus, profile_of
    from carag.engine.what_if.answers import past_effects
    from carag.engine.what_if.documents import policy_effects, this_minute
    from carag.engine.what_if.groups import group_effects
    from carag.engine.what_if.questions import question_effects, read_asked
    from carag.policy import Profile

    given, minute = Profile.open(new), this_minute()
    old, table = profile_of(store).table, given.table
    stated = None if groups is None else read_stated(groups, given)
    with open_corpus(store) as corpus:
        cells = policy_effects(corpus, old, table, minute)
        members = None if stated is None else group_effects(corpus, stated, minute)
    past = past_effects(store, table, last) if last else ()
    wanted = [] if questions is None else read_asked(questions)
    asked = (
        question_effects(store, wanted, given, **model_settings(context, store, embedder=embedder))
        if wanted
        else ()
    )
    if as_json:
        said = {"old": old.sha256, "new": table.sha256, "cells": [one.to_json() for one in cells]}
        said["records"] = [one._asdict() for one in past]
        said["questions"] = [one._asdict() for one in asked]
        say_json(said | ({} if members is None else {"groups": members.to_json()}))
        return Exit.OK
    _show_cells(cells)
    if members is not None:
        _show_members(members)
    for one in past:
        head = f"record {one.record}  {one.role}/{one.purpose}  passages lost: {len(one.lost)} of {one.hits}"
        say_ids(head, {"lost": one.lost})
    if last:
        say(f"of the last {last} answers on record, with passages lost: {len(past)}")
    for other in asked:
        found = {"entered": other.entered, "left": other.left}
        say_ids(f"question in line {other.line}  {other.role}/{other.purpose}", found)
    if questions is not None:
        say(f"questions with other passages: {len(asked)}")
    return Exit.OK


@app.command()
def apply(
    profile: Annotated[
        str, typer.Argument(metavar="NAME_OR_DIR", help="A profile with the same bits, or its folder.")
    ],
    store: Store,
    widen: Annotated[
        bool,
        typer.Option("--widen", help="Apply it even if something becomes admissible that was not before."),
    ] = False,
    backend: BackendUrl = None,
) -> int:
    """Put new roles, rules, intents and words in force in a store, record that, and show what it widens or tightens.

    The meaning of a bit never changes in a store: a profile with other bits is refused. Stored documents keep their
    labels until they are added again.

    [dim]carag policy apply ./office --store store[/dim]
    """
    from carag.engine import Engine
    from carag.engine.corpus import documents_opened, open_corpus
    from carag.engine.what_if.documents import policy_effects, this_minute
    from carag.policy import Profile

    given = Profile.open(profile)
    with Engine.open(store, **unembedded(backend)) as engine:
        old = engine.profile.table
        changes, opened, widens = _compared(old, given.table)
        relabelled, exposed = documents_opened(store, old, given.table)
    with open_corpus(store) as corpus:
        cells = policy_effects(corpus, old, given.table, this_minute())
    _show(changes, opened)
    if cells:
        say(f"in all cells, {_all_at_once(cells)}")
    if relabelled:
        names = f", such as {shown(exposed[0])}" if exposed else ""
        say(
            f"documents in the store whose label would change: {relabelled}; less restricted: {len(exposed)}{names}"
        )
    if (widens or exposed) and not widen:
        raise InvalidArgument(
            "this widens what may be used, so nothing was applied; if you intend that, repeat the command with --widen"
        )
    Engine.open(store, **unembedded(backend), profile=given, accept={"policy"}).close()
    say(f"table {given.table.sha256} is in force in {store}, on record")
    return Exit.OK


@app.command()
def label(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="Filings, SGML headers or submissions rows: a file or a directory."
        ),
    ],
    as_json: AsJsonLines = False,
) -> int:
    """Show which bits the rules give each filing, and from which EDGAR field, without storing anything.

    State bits come from the filings under PATH alone. Exit code 65 if something could not be read.

    [dim]carag policy label data/corpus --json[/dim]
    """
    from carag.cli._label_filings import UNREADABLE, labelled

    broken = False
    for said in labelled(path):
        if "skipped" in said:
            warn(f"{said['where']}: skipped: {said['skipped']}")
            continue
        quarantined = said["quarantined"]
        broken |= quarantined is not None and quarantined["code"] == UNREADABLE
        if as_json:
            say_json(said, indent=None)
            continue
        why = f"  quarantined: {quarantined['code']}: {quarantined['text']}" if quarantined else ""
        say(f"{said['accession'] or said['where']}  {said['word']:#010x}  {' '.join(said['bits'])}{why}")
    return Exit.BAD_INPUT if broken else Exit.OK


@app.command()
def bits(
    profile: ProfileName = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the page here.")] = None,
) -> int:
    """Print a Markdown page, generated from a profile's rules, that documents its bits and who may use what.

    [dim]carag policy bits --profile generic --out carag/profiles/generic/BITS.md[/dim]
    """
    from carag.policy import Profile
    from carag.policy.page import profile_page
    from carag.profiles.edgar.rules.bits_page import bits_page

    given = Profile.open() if profile is None else Profile.open(profile)
    page = bits_page(given.table) if given.vocabulary.reader == "edgar" else profile_page(given)
    if out is None:
        say_lines(page)
    else:
        out.write_text(page, encoding="utf-8")
    return Exit.OK


def _in_force(profile: str | None, store: Path | None) -> PolicyTable:
    """Return the table of a profile or of a store."""
    from carag.engine.corpus import profile_of
    from carag.policy import Profile

    if store is None:
        return (Profile.open() if profile is None else Profile.open(profile)).table
    if profile is not None:
        raise InvalidArgument("--profile and --store are both given; give one of them")
    return profile_of(store).table


def _compared(old: PolicyTable, new: PolicyTable) -> tuple[tuple[CellChange, ...], tuple[str, ...], bool]:
    """Return the cells that differ, what else widens, and whether anything widens."""
    from carag.labelling.widening import widenings
    from carag.policy.diff import Direction, compare

    changes, opened = compare(old, new), widenings(old, new)
    return (
        changes,
        opened,
        bool(opened) or any(one.direction in (Direction.WIDENS, Direction.BOTH) for one in changes),
    )


def _show(changes: tuple[CellChange, ...], opened: tuple[str, ...]) -> None:
    for change in changes:
        say(f"{change.role}/{change.purpose}  {change.direction.value}")
        for note in change.notes:
            say(f"  {note}")
    if opened:
        say("labels and questions  widens")
        for text in opened:
            say(f"  {text}")


def _say_effect(what: str, effect: Effect) -> None:
    say_ids(f"{what}  {effect}", effect._asdict())


def _show_cells(cells: Sequence[CellEffect]) -> None:
    for cell in cells:
        _say_effect(f"{cell.role}/{cell.purpose}", cell.at_once)
        if cell.added_again != cell.at_once:
            _say_effect(f"{cell.role}/{cell.purpose} once documents are added again", cell.added_again)
    say(f"in all cells, {_all_at_once(cells)}")


def _show_members(members: GroupsEffect) -> None:
    from carag.engine.what_if.documents import Effect

    for name, effect in members.principals.items():
        _say_effect(name, effect)
    if members.released:
        _say_effect("everyone whom the documents' lists admit", Effect(members.released))
    if members.not_judged:
        say(f"principals that the import also concerns, not judged: {members.not_judged}")
    say(f"for all principals, {members.all}")


def _all_at_once(cells: Iterable[CellEffect]) -> Effect:
    from carag.engine.what_if.documents import Effect

    return Effect.all_of(one.at_once for one in cells)


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "role": cell.role,
        "purpose": cell.purpose,
        "regulation": cell.regulation,
        "masks": [
            {
                "required": pair.required,
                "forbidden": pair.forbidden,
                "when": pair.when,
                "hex": _hex(mask),
            }
            for pair, mask in zip(cell.masks, cell.compiled, strict=True)
        ],
        "may_know_existence": cell.may_know_existence,
        "personal_data": cell.personal_data,
        "past": cell.past,
        "allow_list": cell.allow_list,
        "break_glass": None if cell.break_glass is None else cell.break_glass.model_dump(),
    }


def _hex(mask: Mask) -> str:
    return f"({mask.required:#09x}, {mask.forbidden:#09x})"
