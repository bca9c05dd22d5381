"""Verify and redact receipts with ``cryptography`` alone installed: ``carag verify`` and ``carag receipt redact``.

Exit codes: 0 verified or written, 1 a cryptographic check failed, 2 cannot tell, 64 usage, 65 bad input, 70 internal
error.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from carag.audit import Verdict, redact, verify_erasure, verify_receipt
from carag.audit.auditor.describe import WITHHELD
from carag.audit.receipts.receipt import open_envelope, write_receipt
from carag.cli._describe import describe_receipt
from carag.cli._files import key_text, profile_texts, read_bytes
from carag.cli._output import (
    Exit,
    escape_unencodable,
    exit_of,
    flush,
    hang_up,
    say,
    say_json,
    say_lines,
    warn,
)
from carag.errors import CaragError, CorruptFile, InvalidArgument
from carag.visible import visible, visible_json, visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.audit import Verification


_EXCERPT_CHARACTERS: Final = 120
_OLDER_NAME_OF_KEY: Final = re.compile(r"^--vkey(?==|$)")
_TIME_OF_DAY: Final = re.compile(r"(?<=\d)T(\d\d:\d\d:\d\d)(\.\d+)?")
"""The part of an ISO 8601 time that is printed differently."""
_PRINTED_FOR_EVERY_RECEIPT: Final = frozenset(
    {"verdict", "reason", "undisclosed", "unproved", "withheld", "record", "log", "kind", "logged"}
    | {"opened", "not_shown", "erases"}
)
"""Members that the first lines and the last one print for every kind of record."""


class _Misspelt(Exception):  # control flow inside this module, never raised to a caller
    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Misspelt(f"usage: {message}", " ".join(self.format_usage().split()))


def run(arguments: list[str]) -> int:
    """Run ``verify ...`` or ``receipt ...`` and return the exit code.

    Examples
    --------
    >>> run(["receipt", "redact", "nowhere.json", "--out", "less.json"])
    <Exit.BAD_INPUT: 65>
    """
    escape_unencodable()
    try:
        given = _parser().parse_args([_OLDER_NAME_OF_KEY.sub("--key", word) for word in arguments])
        code: int = given.command(given)
        flush()
    except _Misspelt as error:
        return _refuse(f"{error}; {error.usage}", Exit.USAGE)
    except BrokenPipeError:
        hang_up()
        return Exit.HUNG_UP
    except SystemExit:  # after --help
        return Exit.OK
    except (InvalidArgument, CorruptFile) as error:
        return _refuse(str(error), Exit.BAD_INPUT)
    except (CaragError, OSError) as error:
        return _refuse(str(error), Exit.INTERNAL)
    except Exception as error:  # noqa: BLE001 # Python exits with 1 after a traceback, which would say "tampered"
        return _refuse(f"internal error: {type(error).__name__}", Exit.INTERNAL)
    return code


def _refuse(message: str, code: Exit) -> Exit:
    warn(message)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="carag")
    commands = parser.add_subparsers(required=True, metavar="verify | receipt")
    verify = commands.add_parser(
        "verify",
        help="check a receipt offline",
        description="Check a receipt offline, with nothing but the receipt and the log's public key, and say what it "
        "shows. Exit codes: 0 verified, 1 a cryptographic check failed, 2 cannot tell (not a receipt, another log's "
        "key, or a second opinion that differs).",
        epilog="carag verify r.json --key store/vkey",
    )
    verify.add_argument("receipt", metavar="RECEIPT", type=Path, help="the receipt to check")
    verify.add_argument(
        "--key",
        required=True,
        metavar="VKEY_OR_FILE",
        help="the log's public key (vkey), or a file holding it",
    )
    verify.add_argument(
        "--profile",
        metavar="DIR",
        type=Path,
        help="the folder of the profile that was in force, to name its bits; not needed for shipped profiles",
    )
    about = "check also that the record erases the document that this statement names"
    verify.add_argument("--erased", metavar="STATEMENT", type=Path, help=about)
    verify.add_argument("--second-opinion", metavar="NAME", help="pymerkle: check with that package as well")
    verify.add_argument("--passages", action="store_true", help="print whole passages")
    verify.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    verify.set_defaults(command=_verify)
    receipt = commands.add_parser("receipt", help="make a receipt show less").add_subparsers(required=True)
    less = receipt.add_parser(
        "redact",
        help="leave parts of a receipt out",
        description="Leave parts of a receipt out; what is still shown is proved as before. The record itself is "
        "unchanged: someone who has the same documents can test which of the documents a passage left out came from.",
        epilog="carag receipt redact r.json --out less.json --drop subject --passages 2,4-6 --until",
    )
    less.add_argument("receipt", metavar="RECEIPT", type=Path, help="the receipt to redact")
    less.add_argument("--out", required=True, metavar="FILE", type=Path, help="write the new receipt here")
    less.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="NAME",
        help="answer, query, subject, ...; can be repeated",
    )
    less.add_argument(
        "--passages", default="", metavar="N,M-K|all", help="passages to leave out entirely, numbered from 1"
    )
    less.add_argument(
        "--proofs", default="", metavar="N,M-K|all", help="passages of which only the proof is left out"
    )
    less.add_argument(
        "--until", action="store_true", help="leave out until when the words of passages are valid"
    )
    less.set_defaults(command=_redact)
    return parser


def _redact(given: argparse.Namespace) -> int:
    receipt = read_bytes(given.receipt)
    count = len(open_envelope(receipt).hits)
    less = redact(
        receipt,
        drop=given.drop,
        passages=_numbers("--passages", given.passages, count),
        proofs=_numbers("--proofs", given.proofs, count),
        until=given.until,
    )
    write_receipt(given.out, less)
    say(f"{given.out}: {len(less)} of {len(receipt)} bytes")
    return Exit.OK


def _numbers(option: str, text: str, count: int) -> frozenset[int]:
    """Read ``2,4-6`` or ``all``."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, dash, last = ("1", "-", str(count)) if part == "all" else part.partition("-")
        if not (first.isdecimal() and len(part) < 20 and (last.isdecimal() if dash else not last)):
            raise InvalidArgument(f"{option} is {text!r}; want passages such as 2,4-6, or all")
        found |= set(range(int(first), min(int(last or first), count + int(first)) + 1))
    return frozenset(found)


def _verify(given: argparse.Namespace) -> int:
    receipt = read_bytes(given.receipt)
    checked = (
        verify_receipt(receipt, key_text(given.key))
        if given.erased is None
        else verify_erasure(receipt, read_bytes(given.erased), key_text(given.key))
    )
    if checked.verdict is Verdict.VERIFIED and given.second_opinion is not None:
        checked = _asked_again(checked, receipt, given.second_opinion)
    said = describe_receipt(checked, profile_texts(given.profile))
    if given.json:
        say_json(said)
    else:
        say_lines("\n".join(_lines(said, whole=given.passages)))
    return exit_of(checked.verdict)


def _asked_again(checked: Verification, receipt: bytes, name: str) -> Verification:
    from carag.audit.auditor.second_opinion import check_asked, second_opinion_on

    check_asked(name)
    objection = second_opinion_on(receipt)
    if objection is None:
        return checked
    return replace(checked, verdict=Verdict.UNDECIDED, reason=f"{name} disagrees: {objection}")


def _lines(said: dict[str, Any], *, whole: bool) -> Iterator[str]:
    """Yield the lines to print; the first are those of ``scripts/verify_receipt.py``."""
    shows = ", and so is all that this receipt shows" if "record" in said else ""
    yield visible_line(f"{said['verdict']}: {said['reason']}{shows}")
    passages = said.get("passages", [])
    if any(one["proved_in_state"] for one in passages):
        yield "passages stood in its index state with these texts and words"
    for name, told in (
        ("unproved", "without a proof that they stood in the index state"),
        ("withheld", WITHHELD),
        ("undisclosed", "disclosed by no receipt"),
    ):
        if said[name] and "record" in said:
            yield visible_line(f"{told}: {', '.join(said[name])}")
    if "record" not in said:
        return
    if "erases" in said:
        yield visible_line(f"it erases document {said['erases']}")
    yield ""
    yield from _request(said) if "who" in said else _change(said)
    for passage in passages:
        yield from _passage(passage, whole=whole)
    if "policy" in said:
        yield from _rules(said["policy"])
    yield ""
    yield said["not_shown"]


def _request(said: dict[str, Any]) -> Iterator[str]:
    session = said["session"] + (f", by a token of {said['issuer']}" if "issuer" in said else "")
    known_at = said.get("index", {}).get("known_at")
    yield from _told("who", said["who"])
    yield _line("role", f"{said.get('role', 'unknown')}, for {said.get('purpose', 'an unknown purpose')}")
    yield _line("session", session)
    yield _line("asked", f"{_when(said['started'])}, of what was public by {_when(said['as_of'])}")
    if known_at:
        yield _line("known at", _when(known_at))
    yield _recorded(said)
    yield from _told("question", said["question"])
    if "understood" in said:
        yield from _told("read as", said["understood"])
    if "rank" in said["models"]:
        yield _line("ranked by", said["models"]["rank"])
    if "narrowed" in said:
        yield from _told("narrowed by", said["narrowed"])
    if "outcome" in said:
        words = f": {said['code_in_words']}" if said["code_in_words"] else ""
        yield _line("outcome", f"{said['outcome']} ({said['code']}{words})")
        yield from _told("answer", said["answer"])


def _change(said: dict[str, Any]) -> Iterator[str]:
    yield _recorded(said)
    for name, value in {**said, **said["opened"]}.items():
        if name not in _PRINTED_FOR_EVERY_RECEIPT:
            text = value if isinstance(value, str) else visible_json(value)
            yield _line(name.replace("_", " "), text)


def _recorded(said: dict[str, Any]) -> str:
    return _line("recorded", f"{_when(said['logged'])}, as {said['kind']}")


def _when(written: str) -> str:
    """Format a time for people to read, to the second."""
    return _TIME_OF_DAY.sub(r" \1", written)


def _passage(passage: dict[str, Any], *, whole: bool) -> Iterator[str]:
    marks = [f"similarity {passage['similarity']:.3f}", *(["cited"] if passage["cited"] else [])]
    named = passage["chunk"] or f"({WITHHELD})"
    yield _line(f"passage {passage['passage']}", f"{named}, {', '.join(marks)}; {' '.join(passage['bits'])}")
    text = passage["text"]
    if text is not None and whole:
        yield from (f"    {line}" for line in visible(text).split("\n"))
    elif text is not None:
        short = visible_line(text)
        yield f"    {short[:_EXCERPT_CHARACTERS]}{'…' if len(short) > _EXCERPT_CHARACTERS else ''}"


def _rules(policy: dict[str, Any]) -> Iterator[str]:
    if not policy["admits"] and "admits_besides" not in policy:
        yield _line("rules", "nothing is admitted")
    for name, besides in (("admits", ""), ("admits_besides", "in addition: ")):
        for number, pair in enumerate(policy.get(name, ())):
            needs = f"requires {' and '.join(pair['requires'])}; " if pair["requires"] else ""
            hides = f"hides documents with {', '.join(pair['hides'])}" if pair["hides"] else "hides nothing"
            yield _line("or" if number else "rule", f"{besides}{needs}{hides}")
    for name, besides in (("entities", ""), ("entities_besides", "in addition: ")):
        if listed := policy.get(name):
            denied = f", with {listed['denied']} others denied" if "denied" in listed else ""
            count = f"{listed['count']} companies or persons"
            yield _line("rule", f"{besides}{listed['kind']} list of {count}{denied}")
    if minutes := policy.get("cooling_minutes"):
        yield _line("rule", f"hides reports of material events for {minutes} minutes")
    for bit, meaning in policy["meaning"].items():
        yield f"    {bit}: {meaning}"


def _told(name: str, said: dict[str, str | None]) -> Iterator[str]:
    value = said["value"]
    if value is None:
        withheld = said["because"] == WITHHELD
        yield _line(name, f"(commitment only: {WITHHELD})" if withheld else f"({said['because']})")
        return
    first, *rest = visible(value).split("\n")
    yield _line(name, first)
    yield from (f"{'':<14}{line}" for line in rest)


def _line(name: str, value: str) -> str:
    return visible_line(f"{name + ':':<14}{value}")
