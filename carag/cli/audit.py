"""Check a log, prove records and export it, without its writer's lock and signing key: ``carag audit``.

Exit codes of all commands that check: 0 verified, 1 tampered (something signed or kept is contradicted), 2 cannot tell.
"""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from carag.cli import audit_admin, audit_anchor, audit_erase, audit_read, documents
from carag.cli._files import given_key, read_bytes, read_text, reader_of, table_in, write_text
from carag.cli._options import AsJson, Key, ReadableStore, TrustedWitnesses, TsaRoots
from carag.cli._output import Exit, exit_of, say, say_json, say_lines, warn
from carag.errors import CaragError, CorruptFile, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from carag.audit.anchors.anchor import Anchor
    from carag.audit.auditor.examine import Examination, Kept
    from carag.audit.auditor.reader import LogReader
    from carag.audit.tlog.log_verifier import LogVerifier
    from carag.policy import PolicyTable


app = typer.Typer(
    help="Check a log, prove records, and export it. Exit codes: 0 verified, 1 tampered, 2 cannot tell.",
    no_args_is_help=True,
)
_SECOND_OPINIONS: Final = 1000
"""Roughly how many records get a second opinion, evenly spaced over the log."""
_MAX_REASONS: Final = 20
"""The most reasons, records or anchors that are printed."""

Checkpoints = Annotated[
    list[Path] | None,
    typer.Option("--checkpoint", metavar="FILE", help="A checkpoint kept elsewhere; can be repeated."),
]
Receipts = Annotated[
    list[Path] | None,
    typer.Option("--receipt", metavar="FILE", help="A receipt kept elsewhere; can be repeated."),
]
AnchorEvidence = Annotated[
    Path | None,
    typer.Option(
        "--anchors", metavar="DIR", help="Evidence of anchors: [b]anchors/[/b] in the store, or a copy."
    ),
]
Anchors = Annotated[
    list[str] | None,
    typer.Option(
        "--anchor",
        metavar="ANCHOR",
        help="An anchor to confirm the evidence with, written as for [b]carag audit anchor --to[/b]; can be repeated.",
    ),
]
SecondOpinion = Annotated[
    str | None,
    typer.Option("--second-opinion", metavar="NAME", help="[b]pymerkle[/b]: check with that too."),
]


def _as_check(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the exit codes of a check: 1 if the signatures are contradicted, 2 for all other errors."""

    @wraps(command)
    def checked(**given: Any) -> int:
        try:
            return command(**given)
        except CaragError as error:
            tampered = isinstance(error, CorruptFile)
            verdict, code = ("failed", Exit.TAMPERED) if tampered else ("undecided", Exit.CANNOT_TELL)
            if given.get("as_json"):
                say_json({"verdict": verdict, "reason": str(error)})
            else:
                warn(f"{verdict}: {error}")
            return code

    return checked


@app.command()
@_as_check
def verify(
    store: ReadableStore,
    vkey: Key = None,
    checkpoint: Checkpoints = None,
    receipt: Receipts = None,
    anchors: AnchorEvidence = None,
    anchor: Anchors = None,
    policy: TrustedWitnesses = None,
    tsa_roots: TsaRoots = None,
    second_opinion: SecondOpinion = None,
    as_json: AsJson = False,
) -> int:
    """Hash every record again and compare the hashes with what was signed, here and in whatever was kept elsewhere.

    Without a checkpoint, receipt or anchor from elsewhere, a log that was cut short, rolled back, or rewritten with a
    stolen key looks whole. Evidence whose anchor is not named ends in "cannot tell".

    [dim]carag audit verify --store store --key vkey --receipt old-receipt.json[/dim]
    """
    from carag.audit import Verdict
    from carag.audit.auditor.examine import Examination, examine

    kept = _kept(given_key(vkey), store, checkpoint, receipt)
    with reader_of(store, vkey) as reader:
        found = examine(reader, kept)
        if found.verdict is Verdict.VERIFIED and second_opinion is not None:
            differing = _disagreements(reader, second_opinion)
            if differing:
                reason = f"{second_opinion} disagrees on {', '.join(differing[:_MAX_REASONS])}"
                found = Examination(Verdict.UNDECIDED, reason, found.size, found.checkpoint)
        if found.verdict is Verdict.VERIFIED and anchors is not None:
            from carag.audit.anchors.targets import anchors_named

            trusted = anchors_named(anchor or (), policy=policy, tsa_roots=tsa_roots)
            found = _reviewed(reader, found, anchors, trusted)
    return _tell(found, as_json)


@app.command()
@_as_check
def prove(
    seq: Annotated[int, typer.Argument(metavar="SEQ", help="The record's number, from 0.")],
    store: ReadableStore,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Write the three files here.")],
    vkey: Key = None,
) -> int:
    """Write ``record.json``, ``proof.tlog-proof`` and ``vkey`` of one record, for any tlog client.

    [dim]carag audit prove 17 --store store --out proof-17[/dim]
    """
    from carag.audit.auditor.export import write_proof

    with reader_of(store, vkey) as reader:
        write_proof(reader, seq, out)
        say(f"record {seq} of {reader.size}: {out}/record.json, proof.tlog-proof, vkey")
    return Exit.OK


@app.command()
@_as_check
def consistency(
    old: Annotated[
        str,
        typer.Argument(metavar="OLD", help="A number of records, or a checkpoint or receipt kept elsewhere."),
    ],
    store: Annotated[
        Path | None, typer.Option("--store", metavar="DIR", help="Make the proof from this log.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the proof here instead of printing it."),
    ] = None,
    proof: Annotated[
        Path | None, typer.Option("--proof", metavar="FILE", help="Check this proof instead of making one.")
    ] = None,
    vkey: Key = None,
) -> int:
    """Prove that the log extends its state at an earlier size, or check such a proof.

    [dim]carag audit consistency old.checkpoint --store store --out consistency.txt[/dim]
    [dim]carag audit consistency old.checkpoint --proof consistency.txt --key vkey[/dim]
    """
    if (store is None) == (proof is None):
        raise InvalidArgument("give --store to make a proof, or --proof to check one")
    if proof is not None:
        return _check_proof(Path(old), proof, vkey)
    return _make_proof(old, store or Path(), out, vkey)


@app.command()
@_as_check
def replay(
    store: ReadableStore,
    vkey: Key = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            metavar="FILE_OR_DIR",
            help="The table in force at the time, or its profile's folder. Default: the tables that ship with CARAG.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Derive each record's masks again from role, purpose and table, and check every passage against them.

    Records that cannot be checked, such as those under another table, are counted, and the exit code is 2.

    [dim]carag audit replay --store store[/dim]
    """
    from carag.audit import Verdict
    from carag.audit.auditor.examine import examine

    counts = {"records": 0, "replayed": 0, "undecided": 0, "unreadable": 0}
    wrong: list[str] = []
    judge = _replayer(_tables(table), counts, wrong)
    with reader_of(store, vkey) as reader:
        found = examine(reader, visit=judge)
    if found.verdict is not Verdict.VERIFIED:
        return _tell(found, as_json)
    if as_json:
        say_json({**counts, "contradictions": wrong})
    else:
        for line in wrong[:_MAX_REASONS]:
            say(line)
        say(
            f"{counts['records']} records, {counts['replayed']} replayed, {len(wrong)} contradictions; "
            f"{counts['undecided']} undecided, {counts['unreadable']} of an unknown version"
        )
    if wrong:
        return Exit.TAMPERED
    return Exit.CANNOT_TELL if counts["undecided"] or counts["unreadable"] else Exit.OK


@app.command()
@_as_check
def export(
    store: ReadableStore,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="A new directory.")],
    vkey: Key = None,
    checkpoint: Checkpoints = None,
    receipt: Receipts = None,
    as_json: AsJson = False,
) -> int:
    """Verify the log and write all records as JSON lines, with the checkpoint, the tree and the public key.

    Nothing personal is exported: commitments are, but neither the salts and values behind them nor any passage's text.
    Check the directory with ``scripts/verify_receipt.py DIR --key VKEY``.

    [dim]carag audit export --store store --out export-2026-11[/dim]
    """
    from carag.audit.auditor.export import export_log

    kept = _kept(given_key(vkey), store, checkpoint, receipt)
    with reader_of(store, vkey) as reader:
        return _tell(export_log(reader, out, kept), as_json)


def _disagreements(reader: LogReader, name: str) -> list[str]:
    from carag.audit.auditor.second_opinion import check_asked, disagreements

    check_asked(name)
    step = max(1, reader.size // _SECOND_OPINIONS)
    return disagreements(reader, range(0, reader.size, step))


def _reviewed(
    reader: LogReader, found: Examination, directory: Path, anchors: Sequence[Anchor]
) -> Examination:
    """Compare evidence of anchors with a log that is consistent in itself, and with the anchors."""
    from carag.audit import Verdict
    from carag.audit.anchors.evidence import Shelf
    from carag.audit.anchors.review import ReaderHistory, review

    try:
        evidence = list(Shelf(directory)) if directory.is_dir() else []
    except CorruptFile as error:  # says nothing about the log
        raise InvalidArgument(f"{error}; name a file of evidence that carag audit anchor wrote") from error
    if not evidence:
        raise InvalidArgument(
            f"{directory} holds no evidence; name the directory that carag audit anchor wrote"
        )
    judged = list(review(ReaderHistory(reader), evidence, reader.key.keys, anchors))
    for verdict in (Verdict.FAILED, Verdict.UNDECIDED):
        reasons = [f"{one.evidence.name}: {one.reason}" for one in judged if one.verdict is verdict]
        if reasons:
            return replace(found, verdict=verdict, reason="; ".join(reasons[:_MAX_REASONS]))
    names = tuple(one.evidence.name for one in judged)
    reason = f"{found.reason}; confirmed outside: {', '.join(names[:_MAX_REASONS])}"
    return replace(found, reason=reason, extends=(*found.extends, *names))


def _check_proof(old: Path, proof: Path, vkey: str | None) -> int:
    from carag.audit.receipts.check_proof import check_consistency
    from carag.audit.tlog.log_verifier import LogVerifier

    if vkey is None:
        raise InvalidArgument("give --key, the log's public key, to check a proof")
    key = LogVerifier.parse(given_key(vkey) or "")
    names = str(old), str(proof)
    verdict, reason = check_consistency(_checkpoint_text(old), read_text(proof), key, names)
    say(f"{verdict.value}: {reason}")
    return exit_of(verdict)


def _checkpoint_text(path: Path) -> str:
    """Return the text of a checkpoint file, or the checkpoint in a receipt."""
    from carag.audit.receipts.receipt import checkpoint_in

    text = read_text(path)
    if not text.startswith("{"):
        return text
    try:
        return checkpoint_in(text.encode("utf-8")).to_text()
    except CorruptFile as error:
        raise InvalidArgument(f"{path}: {error}; give a checkpoint or receipt of this log") from error


def _make_proof(old: str, store: Path, out: Path | None, vkey: str | None) -> int:
    from carag.audit.auditor.examine import extends

    text = given_key(vkey)
    kept = None if old.isdecimal() else _kept_file(Path(old), _trusted(text, store))
    with reader_of(store, vkey) as reader:
        if kept is not None:
            extends(reader, kept)
        proof = reader.consistency(int(old) if kept is None else kept.checkpoint.size)
        reader.check_unchanged()
    if out is None:
        say_lines(proof)
    else:
        write_text(out, proof)
        say(f"the log extends {'its first ' + old + ' records' if kept is None else kept.name}: {out}")
    return Exit.OK


def _replayer(
    tables: Sequence[PolicyTable], counts: dict[str, int], wrong: list[str]
) -> Callable[[int, bytes], None]:
    from carag.audit import Record
    from carag.engine.what_if.replay import ReplayVerdict, replay_all

    def judge(seq: int, body: bytes) -> None:
        counts["records"] += 1
        try:
            record = Record.parse(body)
        except CorruptFile:  # its hash is right, so it is intact: this version cannot read it
            counts["unreadable"] += 1
            return
        (again,) = replay_all([record], tables)
        counts["replayed"] += again.verdict in (ReplayVerdict.MATCHES, ReplayVerdict.DIFFERS)
        counts["undecided"] += again.verdict is ReplayVerdict.UNDECIDED
        if again.verdict is ReplayVerdict.DIFFERS:
            wrong.append(f"record {seq}: {again.reason}")

    return judge


def _tables(path: Path | None) -> list[PolicyTable]:
    from carag.policy import PolicyTable
    from carag.policy.shipped import SHIPPED

    return [PolicyTable.shipped(name) for name in SHIPPED] if path is None else [table_in(path)]


def _kept(
    vkey: str | None, store: Path, checkpoints: list[Path] | None, receipts: list[Path] | None
) -> list[Kept]:
    named = [*(checkpoints or ()), *(receipts or ())]
    return [_kept_file(path, _trusted(vkey, store)) for path in named]


def _kept_file(path: Path, key: LogVerifier) -> Kept:
    """Read a checkpoint or receipt; one that does not verify is bad input, not a sign of a tampered log."""
    from carag.audit.auditor.examine import kept_checkpoint, kept_receipt

    data = read_bytes(path)
    try:
        if data.startswith(b"{"):
            return kept_receipt(data, str(key), str(path))
        return kept_checkpoint(data.decode("utf-8"), key, str(path))
    except (CorruptFile, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{error}; give a checkpoint or receipt of this log") from error


def _trusted(vkey: str | None, store: Path) -> LogVerifier:
    from carag.audit.auditor.reader import key_of

    return key_of(store, vkey)


def _tell(found: Examination, as_json: bool) -> int:
    from carag.audit import Verdict

    if as_json:
        verdict = {"verdict": found.verdict.value, "reason": found.reason}
        say_json({**verdict, "size": found.size, "extends": list(found.extends)})
    else:
        say(f"{found.verdict.value}: {found.reason}")
        if found.verdict is Verdict.VERIFIED and not found.extends:
            say("note: with nothing kept elsewhere, truncation and rollback cannot be detected")
    return exit_of(found.verdict)


app.command("list")(_as_check(audit_read.list_records))
app.command("show")(_as_check(audit_read.show))
app.command("anchor")(_as_check(audit_anchor.anchor))
app.command("erasures")(_as_check(documents.erasures))
app.command("rotate")(_as_check(audit_admin.rotate))
for _command in (
    audit_admin.accept,
    audit_erase.erase,
    audit_erase.hold,
    audit_erase.release,
    audit_erase.disclose,
    audit_admin.publish,
):
    app.command()(_command)
