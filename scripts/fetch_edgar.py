#!/usr/bin/env python3
"""Fetch from EDGAR the kind of corpus the paper has: filings of a window, drawn by a seed, as they were filed.

    scripts/fetch_edgar.py --user-agent "Your Name you@example.org" --out filings

    scripts/fetch_edgar.py --user-agent "Your Name you@example.org" --out DATA/edgar --manifest manifest.jsonl

With --manifest (carag bench edgar writes one) it fetches the filings named there instead of drawing some.
The SEC asks every reader to say who they are and to make at most ten requests a second
(sec.gov/os/webmaster-faq#developers). What is on disk is not fetched again, so a run that was stopped is
gone on with. `carag ingest OUT --store STORE` reads what this writes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOST: Final = "https://www.sec.gov"
FORMS: Final = (
    "10-K",
    "10-Q",
    "8-K",
    "20-F",
    "6-K",
    "DEF 14A",
    "S-1",
    "4",
    "10-K/A",
    "10-Q/A",
    "CORRESP",
    "UPLOAD",
)
MOST_PER_SECOND: Final = 10.0
"""The SEC's limit; what goes beyond it is locked out."""

_QUARTER: Final = re.compile(r"(\d{4})Q([1-4])")
_CONTACT: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_ACCESSION: Final = re.compile(r"\d{10}-\d{2}-\d{6}")
_ON_EDGAR: Final = re.compile(r"edgar/data/\d{1,10}/\d{10}-\d{2}-\d{6}\.txt")
_TRIES: Final = 5
_AGAIN: Final = frozenset({403, 429, 500, 502, 503, 504})
"""EDGAR answers 403 or 429 to who asks too fast."""


class FetchError(Exception):
    """What came, and what to do."""


class NotThereError(FetchError):
    """Turned away for good: asking again would not help."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of EDGAR's form index."""

    form: str
    company: str
    cik: int
    filed: str
    path: str

    @property
    def accession_number(self) -> str:
        """As the path ends."""
        return Path(self.path).stem


class Client:
    """Asks politely: says who asks, keeps the pace, and waits longer each time it is turned away.

    Parameters
    ----------
    user_agent : str
        Name and mail address, as the SEC requires.
    host : str
        Another one for tests.
    per_second : float
    sleep, clock : callable
        Of :mod:`time`.

    Raises
    ------
    FetchError
        If the user agent names no mail address, or the pace is beyond the SEC's limit.
    """

    def __init__(
        self,
        user_agent: str,
        *,
        host: str = HOST,
        per_second: float = 8.0,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not _CONTACT.search(user_agent) or not user_agent.isprintable():
            raise FetchError(
                f"user agent {user_agent!r} names no mail address; the SEC wants 'Name name@domain'"
            )
        if not 0 < per_second <= MOST_PER_SECOND:
            raise FetchError(f"{per_second} requests a second; the SEC allows at most {MOST_PER_SECOND:g}")
        self._user_agent, self._host, self._gap = user_agent, host, 1 / per_second
        self._sleep, self._clock = sleep, clock
        self._next = clock()

    def get(self, path: str) -> bytes:
        """Return what is at a path of the host.

        Raises
        ------
        FetchError
            If it is not there, or the host still turns us away after five tries.
        """
        request = urllib.request.Request(  # noqa: S310 - the host is ours to say
            f"{self._host}/{path}", headers={"User-Agent": self._user_agent, "Accept-Encoding": "gzip"}
        )
        for turn in range(_TRIES):
            self._wait()
            try:
                with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
                    body: bytes = reply.read()
                    length = reply.headers.get("Content-Length")
                    if length is None or len(body) == int(length):
                        return (
                            gzip.decompress(body) if reply.headers.get("Content-Encoding") == "gzip" else body
                        )
                    why = "the reply was cut off"
            except urllib.error.HTTPError as error:
                if error.code not in _AGAIN:
                    raise NotThereError(f"{path}: HTTP {error.code} {error.reason}") from error
                why = f"HTTP {error.code}"
            except (
                urllib.error.URLError,
                TimeoutError,
                ConnectionError,
                EOFError,
                gzip.BadGzipFile,
            ) as error:
                why = str(error)
            if turn + 1 < _TRIES:
                self._sleep(2.0**turn)
        raise FetchError(
            f"{path}: {why}, {_TRIES} times; wait ten minutes and run again: it goes on from here"
        )

    def _wait(self) -> None:
        now = self._clock()
        if now < self._next:
            self._sleep(self._next - now)
        self._next = max(now, self._next) + self._gap


def quarters(first: str, last: str) -> list[tuple[int, int]]:
    """Return the quarters from one to another, as (year, quarter)."""
    ends = []
    for text in (first, last):
        if not (match := _QUARTER.fullmatch(text)):
            raise FetchError(f"{text!r} is not a quarter; give one such as 2024Q3")
        ends.append(int(match[1]) * 4 + int(match[2]) - 1)
    if ends[0] > ends[1]:
        raise FetchError(f"{first} is after {last}; want the earlier quarter first")
    return [(at // 4, at % 4 + 1) for at in range(ends[0], ends[1] + 1)]


def read_index(text: str) -> Iterator[Entry]:
    """Read ``master.idx``: CIK|company|form|date|path, below a line of dashes."""
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) == 5 and parts[0].isdigit() and _ACCESSION.search(parts[4]):
            yield Entry(parts[2], parts[1], int(parts[0]), parts[3], parts[4])


def choose(entries: list[Entry], *, filings: int, filers: int, seed: int) -> list[Entry]:
    """Draw filers, then their filings in turn, until there are enough; each filing once."""
    of_filer: dict[int, list[Entry]] = {}
    seen: set[str] = set()
    for entry in sorted(entries, key=lambda one: (one.cik, one.filed, one.path)):
        if entry.accession_number not in seen:  # co-registrants share one
            seen.add(entry.accession_number)
            of_filer.setdefault(entry.cik, []).append(entry)
    rng = random.Random(seed)  # noqa: S311 - sampling, no secret
    ciks = rng.sample(sorted(of_filer), min(filers, len(of_filer)))
    for cik in ciks:
        rng.shuffle(of_filer[cik])
    chosen: list[Entry] = []
    turn = 0
    while len(chosen) < filings and any(len(of_filer[cik]) > turn for cik in ciks):
        chosen += [of_filer[cik][turn] for cik in ciks if len(of_filer[cik]) > turn]
        turn += 1
    return chosen[:filings]


def fetch(
    client: Client,
    out: Path,
    *,
    first: str,
    last: str,
    forms: tuple[str, ...],
    filings: int,
    filers: int,
    seed: int,
    say: Callable[[str], None] = print,
) -> Counter[str]:
    """Fetch indexes, draw, and fetch the filings that are not on disk.

    Returns
    -------
    Counter
        ``fetched``, ``kept`` (on disk already) and ``missing`` (not there; their names are in ``missing.txt``).
    """
    indexes = out / "index"
    indexes.mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    for year, quarter in quarters(first, last):
        path = indexes / f"{year}Q{quarter}.idx"
        if not path.exists():
            _write(path, client.get(f"Archives/edgar/full-index/{year}/QTR{quarter}/master.idx"))
        # Names of companies are Latin-1 in old indexes.
        entries += [one for one in read_index(path.read_bytes().decode("latin-1")) if one.form in forms]
    chosen = [one.path for one in choose(entries, filings=filings, filers=filers, seed=seed)]
    settings = {
        "first": first,
        "last": last,
        "forms": forms,
        "filings": filings,
        "filers": filers,
        "seed": seed,
    }
    _write(
        out / "chosen.json",
        json.dumps({**settings, "chosen": chosen}, indent=1).encode(),
    )
    return fetch_submissions(client, out, chosen, say=say)


def fetch_submissions(
    client: Client,
    out: Path,
    paths: list[str],
    *,
    unnamed: tuple[str, ...] = (),
    say: Callable[[str], None] = print,
) -> Counter[str]:
    """Fetch the submissions at some paths that are not on disk; filings without a path count as missing.

    Returns
    -------
    Counter
        As of :func:`fetch`.
    """
    texts = out / "filings"
    texts.mkdir(parents=True, exist_ok=True)
    done: Counter[str] = Counter()
    missing = [f"{name}\tthe manifest has no path on EDGAR for it" for name in unnamed]
    for number, one in enumerate(paths, start=1):
        path = texts / Path(one).name
        if path.exists():
            done["kept"] += 1
            continue
        try:
            body = client.get(f"Archives/{one.removeprefix('Archives/')}")
        except NotThereError as error:
            missing.append(f"{one}\t{error}")
            continue
        if b"<SEC-HEADER>" in body[:4096] or b"<SEC-DOCUMENT>" in body[:4096]:
            _write(path, body)
            done["fetched"] += 1
        else:
            missing.append(f"{one}\tthe reply is not a submission")
        if number % 100 == 0:
            say(f"{number} of {len(paths)}")
    (out / "missing.txt").unlink(missing_ok=True)
    if missing:
        done["missing"] = len(missing)
        _write(out / "missing.txt", ("\n".join(missing) + "\n").encode())
    return done


def read_manifest(path: Path) -> dict[str, str | None]:
    """Return the path on EDGAR of each filing that a manifest names, or None, by accession number.

    Raises
    ------
    FetchError
        If the file is not a valid manifest.
    """
    found: dict[str, str | None] = {}
    try:
        data = path.read_bytes()
        for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines():
            row = json.loads(line)
            name, at = row["accession_number"], row["path"]
            if at is not None and not _ON_EDGAR.fullmatch(at):
                raise FetchError(
                    f"{path}: {at!r} is not a path of a submission on EDGAR; copy the file again"
                )
            found[name] = at
    except (ValueError, TypeError, KeyError, EOFError, gzip.BadGzipFile) as error:
        raise FetchError(f"{path} is not a valid manifest ({error!r}); copy the file again") from error
    return found


def _write(path: Path, content: bytes) -> None:
    """Write all of a file or nothing."""
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(content)
    beside.replace(path)


def main(arguments: list[str] | None = None) -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--user-agent", required=True, help="your name and mail address")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--manifest", type=Path, help="fetch what this file names; nothing is drawn")
    parser.add_argument("--first", default="2024Q3", help="quarter, as the paper's (default %(default)s)")
    parser.add_argument("--last", default="2026Q1", help="quarter (default %(default)s)")
    parser.add_argument("--filings", type=int, default=6_000)
    parser.add_argument("--filers", type=int, default=877)
    parser.add_argument("--forms", default=",".join(FORMS), help="comma-separated")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--per-second", type=float, default=8.0)
    parser.add_argument("--host", default=HOST, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    try:
        client = Client(given.user_agent, host=given.host, per_second=given.per_second)
        if given.manifest is not None:
            named = read_manifest(given.manifest)
            paths = [path for path in named.values() if path is not None]
            unnamed = tuple(name for name, path in named.items() if path is None)
            done = fetch_submissions(client, given.out, paths, unnamed=unnamed)
        else:
            done = fetch(
                client,
                given.out,
                first=given.first,
                last=given.last,
                forms=tuple(form.strip() for form in given.forms.split(",")),
                filings=given.filings,
                filers=given.filers,
                seed=given.seed,
            )
    except (FetchError, OSError) as error:
        print(error, file=sys.stderr)
        return 65
    print(
        f"{done['fetched']} fetched, {done['kept']} on disk already, {done['missing']} missing, in {given.out}"
    )
    if given.manifest is not None and done["missing"]:
        print(f"missing:\n{(given.out / 'missing.txt').read_text()}", end="", file=sys.stderr)
        return 65
    return 0


if __name__ == "__main__":
    sys.exit(main())
