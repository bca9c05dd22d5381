"""The canary that listens to the whole suite hears a leak wherever there is one, and fails the test that made it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.canary import ALLOWED, FOREIGN, WORDS

ROOT = Path(__file__).parents[1]
LEAKS = """\
import logging, threading
import pytest
from opentelemetry.trace import get_tracer

WORD = "zwyq" + "canary"

@pytest.fixture
def hears_service(request):
    return request.config.pluginmanager.get_plugin("canary of content")._listen_to_service

def test_nothing():
    logging.getLogger("carag.engine").debug("opened")

def test_log():
    logging.getLogger("carag.engine").debug("asked: %s", WORD)

def test_log_that_goes_nowhere():
    deaf = logging.getLogger("deaf.one")
    deaf.propagate = False
    deaf.info(WORD)

def test_traceback():
    try:
        raise KeyError(WORD)
    except KeyError:
        logging.getLogger("asyncio").exception("failed")

def test_thread():
    one = threading.Thread(target=logging.getLogger("uvicorn.error").info, args=(WORD,))
    one.start()
    one.join()

def test_span():
    get_tracer("t").start_span("s", attributes={"question": WORD}).end()

def test_status():
    with pytest.raises(KeyError), get_tracer("t").start_as_current_span("s"):
        raise KeyError(WORD)

def test_metric(hears_service):
    from carag.service.metrics import Metrics
    hears_service()
    Metrics().text(**{WORD: 1})

def test_problem(hears_service):
    from carag.service.problems import Problem
    hears_service()
    Problem("INVALID_REQUEST", at=[WORD]).body()

def test_token():
    logging.getLogger("jwt").debug("refused %s", ".".join(["eyJhbGciOiJI", "eyJzdWIiOiJh", "c2ln"]))
"""


@pytest.mark.release
def test_a_leak_is_caught(tmp_path: Path) -> None:
    """By the logger, span, metric or problem that told it; and a test that tells nothing passes."""
    pytest.importorskip("opentelemetry.sdk")
    (tmp_path / "test_leaks.py").write_text(LEAKS)
    words = ["-q", "-rN", "-p", "tests.canary", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, str(tmp_path), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    leaking = LEAKS.count("def test_") - 1
    assert f"{leaking} failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert leaking == done.stdout.count(", in test_leaks.py::test_")


def test_what_is_allowed_has_its_reason() -> None:
    """Few places, each with a reason; and the words are those that tests use."""
    assert all(ALLOWED.values())
    assert all(FOREIGN.values())
    assert len(ALLOWED) + len(FOREIGN) < 10
    sources = "\n".join(
        path.read_text().lower() for path in (ROOT / "tests").rglob("*.py") if path.name != "canary.py"
    )
    sources += (ROOT / "data" / "questions.jsonl").read_text().lower()
    for word in WORDS.pattern.split("|")[:-1]:  # the last is any token
        assert word.replace("[.]", ".") in sources, word
