"""Listen, while all tests run, for words that must not be in logs, spans, metrics or the bodies of problems.

A plugin of pytest that ``tests/conftest.py`` registers. The words are those that tests put into questions, passages,
tokens and names. A test during which one of them is told fails, with the place; so does the run, where it is told
between tests. Records are read as they are made, so neither a level of a handler nor ``propagate`` hides one, and all
loggers are at DEBUG that have no level of their own.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


WORDS: Final = re.compile(
    "|".join(
        [
            "zwyqcanary",  # tests/service: in every field that a caller fills
            "royalty rate",  # the question of most tests, and the passages that answer it
            "cardew institute",
            "lmf-204",
            "kestrel grid",
            "what must not be shown",
            "heron-4711",
            "@bank[.]example",  # people
            "ana-7731",
            "wizard of the east",
            "sk-nobodys",  # a secret of a model server
            "a token of a stranger",
            r"eyj[\w-]{8,}[.]eyj[\w-]{8,}[.]",  # any signed token
        ]
    )
)
"""Matched against lower-case text."""

FOREIGN: Final = {
    "httpx": "the tests' own client tells the addresses that a test asks for",
    "httpcore": "the same client, below",
    "hypothesis": "tells the examples that it draws",
}
"""Loggers that may tell them, by their first name, and why."""

ALLOWED: Final[dict[str, str]] = {}
"""Tests that tell them on purpose, and why."""


class Canary:
    """Hears what is logged, exported, counted and answered, and keeps where a word of :data:`WORDS` was told."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.test = "between tests"
        self._lock = threading.RLock()  # a handler of a signal may log as well
        self._replaced: list[tuple[Any, str, Any]] = []

    def hear(self, where: str, *texts: object) -> None:
        """Keep a place if a text told there holds a word."""
        for text in texts:
            found = WORDS.search(str(text).lower())
            if found is not None and self.test.partition("[")[0] not in ALLOWED:
                with self._lock:
                    self.heard.append(f"{where} tells {found[0]!r}, in {self.test}")

    # -- where it listens

    def listen(self) -> None:
        """Begin; :meth:`stop` ends it."""
        make = logging.getLogRecordFactory()

        def made(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = make(*args, **kwargs)
            if str(record.name).partition(".")[0] not in FOREIGN:
                self._hear_record(record)
            return record

        self._replace(logging, "_logRecordFactory", made)
        logging.getLogger().setLevel(logging.DEBUG)
        self._listen_to_spans()

    def stop(self) -> None:
        """Put back what was replaced."""
        for place, name, before in reversed(self._replaced):
            setattr(place, name, before)
        self._replaced.clear()

    def _hear_record(self, record: logging.LogRecord) -> None:
        try:
            said = record.getMessage()
        except Exception:  # noqa: BLE001 - whoever logged it hears of that from logging itself
            said = repr((record.msg, record.args))
        error = "".join(traceback.format_exception(record.exc_info[1])) if record.exc_info else ""
        self.hear(f"logger {record.name}, {record.filename}:{record.lineno}", said, error, record.stack_info)

    def _listen_to_spans(self) -> None:
        try:
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
            from opentelemetry.trace import set_tracer_provider
        except ImportError:  # then there are no spans
            return
        canary = self

        class Exporter(SpanExporter):
            def export(self, spans: Any) -> Any:
                for one in spans:
                    canary.hear(f"span {one.instrumentation_scope.name}", one.to_json(indent=None))
                return SpanExportResult.SUCCESS

        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(Exporter()))
        set_tracer_provider(provider)

    def _listen_to_service(self) -> None:
        """As soon as a test has imported it."""
        for module, kind, method in (
            ("carag.service.metrics", "Metrics", "text"),
            ("carag.service.problems", "Problem", "body"),
        ):
            if module in sys.modules and not any(one[1] == method for one in self._replaced):
                self._tell(getattr(sys.modules[module], kind), method)

    def _tell(self, kind: type, method: str) -> None:
        told = getattr(kind, method)

        def heard(*args: Any, **kwargs: Any) -> Any:
            found = told(*args, **kwargs)
            self.hear(f"{kind.__name__}.{method}", found.decode() if isinstance(found, bytes) else found)
            return found

        self._replace(kind, method, heard)

    def _replace(self, place: Any, name: str, by: Any) -> None:
        self._replaced.append((place, name, getattr(place, name)))
        setattr(place, name, by)

    # -- hooks of pytest

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self.test = item.nodeid
        self._listen_to_service()
        return (yield from self._failing())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        self._listen_to_service()  # which a fixture may have imported
        return (yield from self._failing())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Iterator[None]:
        try:
            return (yield from self._failing())
        finally:
            self.test = f"between tests, after {self.test}"

    def _failing(self) -> Iterator[None]:
        found = yield
        with self._lock:
            heard, self.heard = self.heard, []
        if heard:
            pytest.fail(f"{heard[0]} ({len(heard)} places)", pytrace=False)
        return found

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.stop()
        if self.heard:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for one in self.heard[:1]:
            terminalreporter.write_line(f"canary: {one}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    """Listen from here on."""
    canary = Canary()
    config.pluginmanager.register(canary, "canary of content")
    canary.listen()
