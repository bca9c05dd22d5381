"""Read and keep a public table of companies by CIK: names, tickers and ends of fiscal years."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.errors import MALFORMED, CorruptFile, InvalidArgument
from carag.limits import check_label, check_name, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from carag.store.store import CorpusStore


MAX_BYTES: Final = 1 << 26
"""The largest table in bytes, unpacked; the SEC's, of 10,000 companies, is less than a megabyte."""
_MAX_ROWS: Final = 500_000
_MAX_KEPT: Final = 1 << 25
"""The most characters that a store keeps."""
_MAX_TICKERS: Final = 100
_MAX_CIK: Final = 10**10
_MONTH_AND_DAY: Final = re.compile(r"[0-9]{4}")
_LEAP_YEAR: Final = 2000
"""A leap year, which has every day."""
_TEXT: Final = "names"
"""The store's key of the table: one JSON list per line, ascending."""
_HASH: Final = "names_sha256"
"""The store's key of the hexadecimal SHA-256 of that text."""
_WANTED: Final = (
    'want SEC\'s company_tickers.json, {"0": {"cik_str": 320193, "ticker": "AAPL", "title": "Apple Inc."}, ...}, or '
    'lines such as {"cik": 320193, "name": "Apple Inc.", "tickers": ["AAPL"], "fiscal_year_end": "0930"}'
)


class PublicName(NamedTuple):
    """A row of the table."""

    cik: int
    name: str
    tickers: tuple[str, ...] = ()
    fiscal_year_end: str = ""
    """Month and day, such as ``0930``, or empty."""


@dataclass(frozen=True, slots=True)
class PublicNames:
    """A table of companies, ascending, with each name of a CIK once."""

    rows: tuple[PublicName, ...] = ()

    @classmethod
    def parse(cls, content: bytes, file: str = "names") -> PublicNames:
        """Read a table from the bytes of a file, gzipped or not."""
        text = _unpacked(content, file)
        tickers: dict[tuple[int, str], dict[str, None]] = {}
        ends: dict[int, str] = {}
        for number, (where, given) in enumerate(_rows(text, file)):
            if number >= _MAX_ROWS:
                raise InvalidArgument(f"{file} has more than {_MAX_ROWS} rows; want a table of companies")
            one = _checked(given, where)
            tickers.setdefault((one.cik, one.name), {}).update(dict.fromkeys(one.tickers))
            if one.fiscal_year_end and ends.setdefault(one.cik, one.fiscal_year_end) != one.fiscal_year_end:
                raise InvalidArgument(
                    f"{where}: the fiscal year of CIK {one.cik} ends {one.fiscal_year_end}, but {ends[one.cik]} in an "
                    "earlier row; give one date"
                )
        if not tickers:
            raise InvalidArgument(f"{file} has no rows; {_WANTED}")
        return cls(
            tuple(
                PublicName(cik, name, tuple(sorted(of)), ends.get(cik, ""))
                for (cik, name), of in sorted(tickers.items())
            )
        )

    @property
    def sha256(self) -> str:
        """Hex digest of the table's content, whatever file it came in."""
        return _hash_of(self._text())

    def keep(self, store: CorpusStore) -> None:
        """Keep the table in a store, in place of an older one; InvalidArgument if it is too large."""
        text = self._text()
        if len(text) > _MAX_KEPT:
            raise InvalidArgument(f"the table has {len(text)} characters; a store keeps at most {_MAX_KEPT}")
        store.meta_update({_TEXT: text, _HASH: self.sha256})

    @classmethod
    def kept_in(cls, store: CorpusStore) -> PublicNames:
        """Return a store's table, empty if it has none; CorruptFile if it does not match its hash."""
        text, kept = store.meta_get(_TEXT), store.meta_get(_HASH)
        if text is None and kept is None:
            return cls()
        try:
            rows = [json.loads(line) for line in (text or "").splitlines()]
            made = cls(tuple(PublicName(cik, name, tuple(of), end) for cik, name, of, end in rows))
            is_whole = _hash_of(text or "") == kept
        except MALFORMED:
            is_whole = False
        if not is_whole:
            raise CorruptFile(
                f"the table of names in {store.path} does not match its hash; give it again: "
                f"carag names FILE --store {store.path.parent}"
            )
        return made

    @staticmethod
    def hash_in(store: CorpusStore) -> str | None:
        """Return the hash of a store's table, without reading the table."""
        return store.meta_get(_HASH)

    def _text(self) -> str:
        return "".join(f"{json.dumps(list(row), ensure_ascii=False)}\n" for row in self.rows)


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _unpacked(content: bytes, file: str) -> str:
    try:
        if content[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(content)) as unpacked:
                content = unpacked.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise InvalidArgument(f"{file} has more than {MAX_BYTES} bytes; want a table of companies")
        return content.decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{file} is not a table of names: {error}; {_WANTED}") from error


def _rows(text: str, file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place of each row, and the row in the form of JSON lines."""
    whole = _json(text) if text.lstrip()[:1] == "{" else None
    if isinstance(whole, dict) and "cik" not in whole:
        for key, row in whole.items():
            where = f"{file}, entry {quoted(key)}"
            if not (isinstance(row, dict) and {"cik_str", "title"} <= row.keys()):
                raise InvalidArgument(f"{where} is {quoted(row)}; {_WANTED}")
            tickers = [row["ticker"]] if row.get("ticker") else []
            yield where, {"cik": row["cik_str"], "name": row["title"], "tickers": tickers}
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            row = _json(line)
            if not isinstance(row, dict):
                raise InvalidArgument(f"{file}, line {number} is {quoted(line)}; {_WANTED}")
            yield f"{file}, line {number}", row


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except MALFORMED:
        return None


def _checked(row: dict[str, Any], where: str) -> PublicName:
    cik, name, tickers, end = (row.get(key) for key in ("cik", "name", "tickers", "fiscal_year_end"))
    tickers = [] if tickers is None else tickers
    if type(cik) is not int or not 0 < cik < _MAX_CIK:
        raise InvalidArgument(f"{where}: cik is {quoted(cik)}; want a positive integer of at most ten digits")
    check_name(f"{where}: name", name)
    if not str(name).strip():
        raise InvalidArgument(f"{where}: name is empty; give the company's name")
    if not isinstance(tickers, list) or len(tickers) > _MAX_TICKERS:
        raise InvalidArgument(
            f"{where}: tickers are {quoted(tickers)}; want a list of at most {_MAX_TICKERS}"
        )
    for ticker in tickers:
        check_label(f"{where}: a ticker", ticker)
    if end not in (None, "") and not _is_day(end):
        raise InvalidArgument(f"{where}: fiscal_year_end is {quoted(end)}; want month and day, as in '0930'")
    return PublicName(cik, " ".join(str(name).split()), tuple(dict.fromkeys(tickers)), end or "")


def _is_day(text: object) -> bool:
    if not (isinstance(text, str) and _MONTH_AND_DAY.fullmatch(text)):
        return False
    try:
        return bool(date(_LEAP_YEAR, int(text[:2]), int(text[2:])))
    except ValueError:
        return False
