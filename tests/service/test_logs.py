"""A line of a service's log has only what an allow-list names, whichever package logs it."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import logging
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.service.logs import EVENTS, KEYS, Lines, shown
from tests.service.conftest import QUESTION, Asked, token
from tests.service.test_record import CANARY

if TYPE_CHECKING:
    from carag.service.service import Service

ROOT = Path(__file__).parents[2]
OWN = logging.getLogger("carag.service.app")
WORD = "confidence"  # not a word of tests/canary.py, which sees records as they are created


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_request_is_two_lines(service: Service, asked: Asked) -> None:
    """One for its record, with its number, and one for the answer."""
    stream = io.StringIO()
    with shown("json", stream):
        seq = asked.post("ask", {"question": f"{CANARY} {QUESTION}"}, bearer=token()).json()["record"]
        asked.post("ask", {"question": CANARY}, bearer=CANARY)
    record, request, refused = lines(stream)
    assert ("RECORD", "query", seq, "ANSWERED") == tuple(
        record[key] for key in ("event", "operation", "record", "code")
    )
    assert ("REQUEST", "ask", 200) == tuple(request[key] for key in ("event", "operation", "status"))
    assert ("REQUEST", "ask", 401, "TOKEN_MALFORMED") == tuple(
        refused[key] for key in ("event", "operation", "status", "code")
    )
    assert {"time", "level", "logger", "event", "at", "operation", "status", "ms"} == request.keys()
    assert CANARY not in stream.getvalue()


ANYTHING = st.one_of(st.text(), st.integers(), st.none(), st.binary(), st.lists(st.text(), max_size=2))


@given(
    given_as=st.dictionaries(st.sampled_from([*KEYS, "outcome", "question"]), ANYTHING),
    name=st.sampled_from(["carag.engine", "uvicorn.error", "carag", "caragx", "asyncio"]),
    message=st.text(),
)
def test_every_line_has_only_keys_and_values_of_the_list(
    given_as: dict[str, Any], name: str, message: str
) -> None:
    """Whatever is passed as extra; no message is even formatted."""
    record = logging.makeLogRecord(
        {**given_as, "name": name, "levelname": "INFO", "msg": message, "args": (object(),)}
    )
    found = json.loads(Lines("json").format(record))
    assert found.keys() <= KEYS.keys()
    assert all(value == "other" or KEYS[key](value) for key, value in found.items())
    is_ours = name.split(".")[0] == "carag"
    assert is_ours or {"time", "level", "logger", "event", "at"} == found.keys()
    assert is_ours == (found["event"] != "FOREIGN")


@pytest.mark.parametrize("form", ["json", "text"])
def test_lines_of_other_packages_lose_their_text(form: str) -> None:
    """Logger, level, place and an error's type remain; so for warnings and uncaught errors."""
    stream = io.StringIO()

    def dies() -> None:
        raise KeyError(WORD)

    class Dying:
        def __del__(self) -> None:
            dies()

    with shown(form, stream):
        try:
            dies()
        except KeyError:
            logging.getLogger("asyncio").exception("in %s", WORD)
            OWN.error("failed", exc_info=True)
        logging.getLogger("uvicorn.error").warning("GET /?q=%s", WORD)
        logging.getLogger("uvicorn.error").info("not worth a line")
        logging.getLogger(f"of {WORD}").warning("a name is a text as well")
        thread = threading.Thread(target=dies)
        thread.start()
        thread.join()
        Dying()
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(WORD, stacklevel=1)
    said = stream.getvalue()
    assert WORD not in said
    assert "Traceback" not in said
    assert 7 == len(said.splitlines()), said
    assert 4 == said.count("FOREIGN")
    assert (4 if form == "json" else 3) == said.count("KeyError at test_logs.py:")
    assert "asyncio" in said
    assert "uvicorn.error" in said


def test_text_has_our_messages_on_one_line() -> None:
    """For people at a terminal; JSON has codes and places instead."""
    stream = io.StringIO()
    with shown("text", stream):
        OWN.info("ready\x1b[31m\nfor %d", 7, extra={"event": "SERVING"})
    assert stream.getvalue().endswith("Z carag.service.app: ready[31m for 7\n")
    stream = io.StringIO()
    with shown("json", stream):
        OWN.info("for %d", 7, extra={"event": "SERVING"})
        OWN.info("without a code")
    with_code, without = lines(stream)
    assert ("SERVING", "OTHER") == (with_code["event"], without["event"])
    assert without["at"].startswith("test_logs.py:")


def test_a_line_that_cannot_be_written_is_not_printed_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    """Python's own handler would print message and arguments."""
    closed = io.StringIO()
    closed.close()
    with shown("text", closed):
        OWN.info("said of %s", "it")
    assert ("", "") == capsys.readouterr()


def test_everything_is_restored() -> None:
    """Handlers, levels, hooks."""

    def state() -> tuple[Any, ...]:
        root, ours = logging.getLogger(), logging.getLogger("carag")
        hooks = threading.excepthook, sys.unraisablehook, warnings.showwarning
        return [*root.handlers], root.level, ours.level, hooks

    before = state()
    with contextlib.suppress(KeyError), shown("json", io.StringIO()):
        assert state() != before
        raise KeyError
    assert before == state()


def test_every_event_is_on_the_list() -> None:
    """And every listed one is used."""
    found = set()
    for path in (ROOT / "carag").rglob("*.py"):
        if '"event"' not in (text := path.read_text("utf-8")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Dict):
                found |= {
                    value.value
                    for key, value in zip(node.keys, node.values, strict=True)
                    if isinstance(key, ast.Constant)
                    and key.value == "event"
                    and isinstance(value, ast.Constant)
                }
    assert EVENTS == found
