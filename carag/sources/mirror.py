"""Mirror the documents of a site into a folder, requesting only what may be requested and has changed.

A run requests the start, every document that is known, and what their links and redirects lead to. Nothing is deleted:
a document that is gone is reported and listed, so that the corpus's owner can withdraw it.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

import carag
from carag.errors import MALFORMED, InvalidArgument
from carag.extras import require
from carag.http import NoAnswer
from carag.limits import quoted
from carag.readers.child import Child
from carag.readers.outcome import Unreadable
from carag.sources.address import Address, Scope, file_name
from carag.sources.http import Sender
from carag.sources.links import links_of
from carag.sources.polite import Paused, Polite, TimeIsOver
from carag.sources.robots import TOKEN, Robots
from carag.sources.state import Page, State

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from carag.http import Reply
    from carag.sources.robots import Rules
    from carag.sources.state import Waiting


_KINDS: Final = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    "text/plain": ".txt",
}
"""Content types that are kept, and the endings of their files."""
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_GONE: Final = frozenset({404, 410})
_HOPS: Final = 5
"""Greatest number of redirects in a row."""
_IN_A_ROW: Final = 5
"""After this number of addresses in a row without an answer, a host is left alone: it or the network to it is down."""
_BATCH: Final = 100
"""Documents that are moved into the folder together."""
_CONTACT: Final = re.compile(
    r"[!-'*+,\-./0-9A-Za-z=?^_`{|}~]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}|https?://[!-'*-~]+"
)
"""An e-mail address or a page, in characters that a comment of a header may hold (RFC 9110, 5.6.5)."""
_MAX_VALIDATOR: Final = 1024
"""Greatest number of characters of an ETag or a date that is sent back."""
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one run may request, and how much a mirror may hold; InvalidArgument if a value is out of its range."""

    depth: int = 3
    """Greatest number of links from the start."""
    interval: float = 1.0
    """Least number of seconds between two requests; ``robots.txt`` may ask for more."""
    addresses: int = 10_000
    """Greatest number of addresses in a run; links beyond that are counted but not followed."""
    size: int = 1 << 26
    """Greatest number of bytes of a document."""
    total: int = 1 << 33
    """Greatest number of bytes of all documents."""
    seconds: float = 6 * 3600.0
    """Greatest length of a run; the next one continues it."""
    request_seconds: float = 60.0
    """Greatest length of a request."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("depth", 0, 100),
            ("interval", 0.1, 3600.0),
            ("addresses", 1, 10_000_000),
            ("size", 1, 1 << 27),
            ("total", 1, 1 << 50),
            ("seconds", 1.0, 30 * 86400.0),
            ("request_seconds", 0.1, 3600.0),
        ):
            value = getattr(self, name)
            kinds = (int,) if type(low) is int else (int, float)
            if type(value) not in kinds or not low <= value <= high:
                raise InvalidArgument(f"{name} is {quoted(value)}; want a number from {low} to {high}")


@dataclass(frozen=True, slots=True)
class Gone:
    """A document that its site no longer has; its file stays until somebody removes it."""

    file: str
    url: str
    why: str
    since: str
    """When this was found, in ISO 8601."""


@dataclass(slots=True)
class FetchReport:
    """What a run did."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    requests: int = 0
    """All requests, including those for ``robots.txt`` and repeated ones."""
    documents: int = 0
    """Documents in the folder now."""
    left: int = 0
    """Addresses that the next run begins with."""
    beyond: int = 0
    """Links that were not followed, because the run had reached its number of addresses."""
    paused: str = ""
    """Why the run ended before everything was requested; empty if everything was."""
    notes: list[str] = field(default_factory=list)
    """What differs from the last run, or from what the start says, without being a problem."""
    gone: list[Gone] = field(default_factory=list)
    """All documents that are gone, whenever that was found."""
    disallowed: list[str] = field(default_factory=list)
    """Addresses that ``robots.txt`` excludes; they were not requested."""
    problems: list[str] = field(default_factory=list)
    """Addresses that gave no document, each with the reason."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


def fetch(
    url: str,
    folder: Path,
    *,
    contact: str,
    prefixes: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    limits: Limits | None = None,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> FetchReport:
    """Mirror a part of a site into a folder.

    Parameters
    ----------
    url : str
        Where to begin; only hosts named here or in ``also`` are ever requested.
    folder : Path
        A folder that is new, empty, or was mirrored into before. ``FOLDER.fetch`` next to it keeps the state from which
        a killed run continues. ``metadata.jsonl`` states each file's ``url``, when the file was ``fetched`` and, if the
        server said so, when it was ``last_modified``.
    contact : str
        An e-mail address or a page, sent with every request, so that the site's owner can complain.
    prefixes : tuple of str
        Paths below which a document must be; by default the folder of the start.
    also : tuple of str
        Exact names of other hosts, such as a host that serves an authority's files. All linked documents there are
        wanted, whatever their paths. Each host has its own ``robots.txt`` and pace.
    clock, sleep : callable
        Functions that return the seconds since 1970, and that pause.

    Raises
    ------
    InvalidArgument
        If an argument cannot be used, or if the folder holds files that were not fetched from ``url``.
    StoreLocked
        If another process mirrors into it.
    MissingExtra
        If the extra ``web`` is not installed.
    """
    require("fetching documents", "web")
    if not _CONTACT.fullmatch(contact) or len(contact) > 200:
        raise InvalidArgument(f"the contact is {quoted(contact)}; want an e-mail address or https://...")
    start = Address.of(url)
    scope = Scope.of(start, prefixes, also)
    with State(folder, str(start)) as state, Child() as child:
        return _Run(state, scope, contact, limits or Limits(), clock, sleep, child).report()


class _Run:
    def __init__(
        self,
        state: State,
        scope: Scope,
        contact: str,
        limits: Limits,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        child: Child,
    ) -> None:
        self._state, self._limits, self._clock, self._child = state, limits, clock, child
        self._scope = replace(scope, twin=state.get("twin"))
        agent = {"User-Agent": f"{TOKEN}/{carag.__version__} (+{contact})"}
        if "@" in contact and "://" not in contact:
            agent["From"] = contact  # RFC 9110, 10.1.2: a robot ought to send it
        sender = Sender(agent, private=scope.private, seconds=limits.request_seconds)
        self._polite = Polite(sender, clock=clock, sleep=sleep, ends=clock() + limits.seconds)
        self._robots = Robots(self._polite, interval=limits.interval, clock=clock)
        self._report = FetchReport()
        self._failed_in_a_row: Counter[str] = Counter()
        self._resting: dict[str, str] = {}
        """Hosts that get no more requests in this run, each with the reason."""
        self._unpublished = 0

    def report(self) -> FetchReport:
        state, report = self._state, self._report
        state.publish()  # what a killed run left behind
        if before := state.keep_scope(str(self._scope)):
            report.notes.append(
                f"{state.folder} mirrored {before} so far; from now on it mirrors {self._scope}"
            )
        for host in self._scope.hosts:
            not_before = float(state.get(f"not_before {host}") or 0)
            if self._clock() < not_before:
                self._resting[host] = f"{host} asked for no requests before {_instant(not_before)}"
        over = ""
        state.begin(str(self._scope.start))
        while not over and (one := state.next(self._resting)):
            try:
                self._visit(one)
            except TimeIsOver as error:
                over = str(error)
            except Paused as error:
                self._rest(Address.of(one.url).host, error)
            if self._unpublished >= _BATCH:
                state.publish()
                self._unpublished = 0
        state.publish()
        report.paused = "; ".join([*self._resting.values(), *([over] if over else [])])
        pages = state.pages()
        report.documents, report.left, report.requests = len(pages), state.left(), self._polite.requests
        report.gone = [Gone(page.file, page.url, page.gone, page.since) for page in pages if page.gone]
        return report

    def _rest(self, host: str, pause: Paused) -> None:
        self._resting[host] = str(pause)
        if pause.not_before:
            with self._state.transaction():
                self._state.set(f"not_before {host}", str(pause.not_before))

    def _visit(self, one: Waiting) -> None:
        address = Address.of(one.url)
        page = self._state.page(one.url)
        if not self._scope.covers(address):
            return self._no_document(one, "is outside what is mirrored now")
        rules = self._robots.rules(address)
        if not rules.allows(address):
            self._report.disallowed.append(one.url)
            with self._state.transaction():
                self._state.done(one)
            return None
        validators = _validators(page) if page and self._state.content(page) is not None else {}
        try:
            reply = self._asked(address, validators, rules)
        except NoAnswer as error:
            self._no_document(one, str(error))
            self._failed_in_a_row[address.host] += not error.is_final
            if self._failed_in_a_row[address.host] == _IN_A_ROW:
                raise Paused(f"{_IN_A_ROW} addresses of {address.host} in a row gave no answer") from None
            return None
        self._failed_in_a_row[address.host] = 0
        if page and validators and reply.status == 304:
            return self._same(one, page, reply)
        if reply.status == 200:
            return self._received(one, address, page, reply)
        if reply.status in _MOVED:
            return self._moved(one, address, page, reply)
        if reply.status in _GONE and page:
            return self._gone(one, page, f"status {reply.status}")
        return self._no_document(one, f"status {reply.status}")

    def _asked(self, address: Address, validators: dict[str, str], rules: Rules) -> Reply:
        return self._polite.get(
            address,
            validators | {"Accept": ", ".join(_KINDS)},
            interval=rules.interval(self._limits.interval),
            kinds=_KINDS,
            most=self._limits.size,
        )

    def _same(self, one: Waiting, page: Page, reply: Reply) -> None:
        self._report.unchanged += 1
        # A 304 may bring newer validators (RFC 9110, 15.4.5).
        etag = _sendable(reply.headers.get("etag", page.etag))
        modified = _sendable(reply.headers.get("last-modified", page.modified))
        self._keep(one, replace(page, etag=etag, modified=modified, gone="", since=""))

    def _received(self, one: Waiting, address: Address, page: Page | None, reply: Reply) -> None:
        if reply.body is None:
            return self._no_document(
                one, f"has the content type {quoted(reply.kind)}; want {', '.join(_KINDS)}"
            )
        ending = _KINDS[reply.kind]
        if page and ending != _KINDS[page.kind]:  # such as a page that says "not found" with status 200
            return self._no_document(
                one, f"had the content type {page.kind} and now has {reply.kind}; {page.file} stays as it is"
            )
        content = _marked(reply)
        before = self._state.content(page) if page else None
        is_same = before is not None and self._says_the_same(before, content, ending)
        held = self._state.size() - (page.size if page else 0)
        if not is_same and held + len(content) > self._limits.total:
            return self._no_document(
                one, f"would bring the documents to more than {self._limits.total} bytes"
            )
        try:
            links = links_of(content, address, self._child) if ending == ".html" else []
        except Unreadable as error:
            return self._no_document(one, str(error))
        modified = _sendable(reply.headers.get("last-modified", ""))
        received = Page(
            url=one.url,
            file=page.file if page else file_name(address, ending),
            kind=reply.kind,
            sha256=hashlib.sha256(content).hexdigest(),
            size=len(content),
            fetched=_instant(self._clock()),
            etag=_sendable(reply.headers.get("etag", "")),
            modified=modified,
            stated=_http_date(modified),
            links=tuple(dict.fromkeys(str(to) for link in links if (to := self._scope.of_link(link)))),
            depth=min(one.depth, page.depth) if page else one.depth,
            is_staged=True,
        )
        if page and is_same:
            self._report.unchanged += 1
            kept = ("sha256", "size", "fetched", "stated", "is_staged")
            received = replace(received, **{name: getattr(page, name) for name in kept})
        else:
            self._report.changed += page is not None
            self._report.added += page is None
            self._unpublished += 1
            self._state.stage(received.file, content)
        return self._keep(one, received)

    def _keep(self, one: Waiting, page: Page) -> None:
        with self._state.transaction():
            self._state.put(page)
            self._follow([*page.links], depth=one.depth + 1)
            self._state.done(one)

    def _moved(self, one: Waiting, address: Address, page: Page | None, reply: Reply) -> None:
        try:
            to = Address.of(reply.headers.get("location", ""), str(address))
        except InvalidArgument as error:
            return self._no_document(one, f"redirects to something other than a web address: {error}")
        if one.depth == 0 and not self._scope.covers(to) and (wider := self._scope.with_twin(to)):
            self._scope = wider
            self._report.notes.append(
                f"{address} redirects to {to}; {to.host} is mirrored as well, because it is the same site"
            )
            with self._state.transaction():
                self._state.set("twin", to.host)
        if not self._scope.covers(to):
            return self._no_document(one, f"redirects to {to}, which is outside what is mirrored")
        if one.hops == _HOPS:
            return self._no_document(one, f"redirects more than {_HOPS} times")
        with self._state.transaction():
            self._follow([str(to)], depth=one.depth, hops=one.hops + 1)
        return self._gone(one, page, f"redirects to {to}") if page else self._no_document(one, "")

    def _follow(self, urls: list[str], *, depth: int, hops: int = 0) -> None:
        if depth <= self._limits.depth:
            self._report.beyond += self._state.add(urls, depth=depth, hops=hops, most=self._limits.addresses)

    def _gone(self, one: Waiting, page: Page, why: str) -> None:
        with self._state.transaction():
            self._state.put(replace(page, gone=why, since=page.since or _instant(self._clock())))
            self._state.done(one)

    def _says_the_same(self, before: bytes, content: bytes, ending: str) -> bool:
        """Tell whether a document is the same as before: equal, or HTML with the same text and title.

        A form's state or a token may differ with each answer, but no reader ever sees either.
        """
        if before == content or ending != ".html":
            return before == content
        from carag.readers.html import read_html

        try:
            return bool(self._child.call(read_html, before) == self._child.call(read_html, content))
        except Unreadable:
            return False

    def _no_document(self, one: Waiting, why: str) -> None:
        if why:
            self._report.problems.append(f"{one.url}: {why}")
        with self._state.transaction():
            self._state.done(one)


def _validators(page: Page) -> dict[str, str]:
    """Return the headers of a conditional request (RFC 9110, 13.1); both are sent, as a server may know only one."""
    found = {"If-None-Match": page.etag, "If-Modified-Since": page.modified}
    return {name: value for name, value in found.items() if value}


def _sendable(header: str) -> str:
    return header if header.isascii() and header.isprintable() and len(header) <= _MAX_VALIDATOR else ""


def _marked(reply: Reply) -> bytes:
    """Return a text in UTF-8 with a byte order mark if only the header states another encoding; else unchanged."""
    body, charset = reply.body or b"", reply.charset.lower()
    if _KINDS[reply.kind] == ".pdf" or body.startswith((_BOM, b"\xff\xfe", b"\xfe\xff")):
        return body
    from carag.readers.html import ENCODINGS

    codec = ENCODINGS.get(charset, "utf-8")
    if codec != "utf-8":
        with suppress(UnicodeDecodeError):  # unchanged, because the text's reader says what is wrong
            return _BOM + body.decode(codec).encode()
    return body


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _http_date(stated: str) -> str:
    try:
        moment = parsedate_to_datetime(stated)
        # "-0000" means a time in UTC whose local zone is unknown (RFC 5322, 3.3).
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except MALFORMED:
        return ""
