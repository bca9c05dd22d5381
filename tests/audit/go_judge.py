"""Judge proofs with Go's own ``sumdb/note`` and ``sumdb/tlog``, which Debian packages, by ``go/main.go``."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

GO_PATH = Path("/usr/share/gocode")
BINARY = ("record", "old", "text")


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def built(place):
    """Build the verifier and return a function that judges a batch; without Go skip, or fail if it must be there."""
    missing = None
    if shutil.which("go") is None:
        missing = "no `go`; apt-get install golang-go golang-golang-x-mod-dev"
    elif not (GO_PATH / "src/golang.org/x/mod/sumdb/tlog").is_dir():
        missing = "no sumdb packages; apt-get install golang-golang-x-mod-dev"
    if missing:
        if os.environ.get("CARAG_REQUIRE_GO"):
            pytest.fail(missing)
        pytest.skip(missing)
    environment = {
        **os.environ,
        "GO111MODULE": "off",
        "GOPATH": str(GO_PATH),
        "GOCACHE": str(place / "cache"),
    }
    command = ["go", "build", "-o", str(place / "judge"), "."]
    subprocess.run(command, cwd=Path(__file__).with_name("go"), env=environment, check=True)

    def judge(questions, vkey):
        lines = [
            json.dumps(
                {
                    "vkey": vkey,
                    **{
                        name: base64.b64encode(as_bytes(value)).decode() if name in BINARY else value
                        for name, value in q.items()
                    },
                }
            )
            for q in questions
        ]
        done = subprocess.run(
            [place / "judge"], input="\n".join(lines), capture_output=True, text=True, check=True
        )
        answers = done.stdout.splitlines()
        assert len(answers) == len(questions)
        return [answer == "ok" for answer in answers]

    return judge
