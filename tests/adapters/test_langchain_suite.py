"""LangChain's own suites pass over our classes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.release
def test_the_suites_of_langchain_pass_unmodified(tmp_path: Path) -> None:
    """Five tests of a retriever and those of a store, in a process of their own: their plugins are not ours.

    The retriever's engine is never closed, and the process ends without a word of it.
    """
    if find_spec("langchain_tests") is None:
        assert not os.environ.get("CARAG_REQUIRE_ADAPTERS"), "langchain-tests is not installed"
        pytest.skip("langchain-tests is not installed: its suite was not run over carag.adapters.langchain")
    settings = tmp_path / "pytest.ini"
    settings.write_text("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    suite = ROOT / "tests" / "adapters" / "langchain_suite.py"
    options = [
        "-c",
        str(settings),
        f"--rootdir={ROOT}",
        "--import-mode=importlib",
        "-p",
        "no:codspeed",
        "-q",
        "-rA",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *options,
            "--disable-socket",
            "--allow-unix-socket",
            "--noconftest",
            suite,
        ],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr), done.stdout + done.stderr
    passed = re.findall(r"^PASSED .*::(Test\w+)::(\w+)", done.stdout, re.MULTILINE)
    assert 5 == len([name for which, name in passed if which == "TestRetriever"])
    assert 25 == len([name for which, name in passed if which == "TestUnauditedVectorStore"])
