"""Break the guards of the core one at a time, and see that its tests notice.

The list is core.toml, as listed.py reads it. The core is compiled once, without sanitizers; for each mutant only the
file that it changes, or those that include it, are compiled again, and linked with the tests that should notice. A
mutant that does not compile is a mistake in the list.

``python -m tests.mutation.core > tests/mutation/core.txt`` runs all of them and writes the committed result.
"""

from __future__ import annotations

import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutation.listed import Mutant, Outcome, counted, outcome, read, unexplained

ROOT = Path(__file__).parents[2]
CSRC, TESTS = ROOT / "csrc", ROOT / "tests" / "csrc"
FLAGS = [
    "-std=c11",
    "-O1",
    "-ffp-contract=off",
    "-pthread",
    "-DCARAG_CELL_ROWS=256",
    "-DCARAG_WORD_ROWS=16",
    f"-I{CSRC}",
    f"-I{TESTS}",
]
MORE = {
    "policy": ["-fsanitize=bounds", "-fno-sanitize-recover=all"],  # a pair too many is read past the others
    "guards": ["-Wl,--wrap=carag_kernel_get"],  # as in the Makefile
}
ALONE = {"policy"}  # needs a header and nothing of the core
SECONDS = 300  # a test that takes longer hangs, and so has noticed


def mutants() -> list[Mutant]:
    """Read the list."""
    return read(Path(__file__).with_name("core.toml"), CSRC)


class Bench:
    """A directory with the core compiled as it is, and whole tests that pass against it."""

    def __init__(self, out: Path, listed: list[Mutant]) -> None:
        self.out = out
        self.tests = {test for mutant in listed for test in mutant.tests}
        sources = [] if self.tests <= ALONE else sorted(CSRC.rglob("*.c"))
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self._object, sources))
            list(pool.map(self._object, [TESTS / f"test_{test}.c" for test in self.tests - ALONE]))
        self.objects = [out / f"{source.stem}.o" for source in sources]
        said = {test: self._said(test, out, self.objects) for test in self.tests}
        for test, words in said.items():
            if words is None:
                raise ValueError(
                    f"test_{test} fails against the core as it is: nothing can be learned from mutants"
                )
        self.missing = {
            line.split(":")[0] for line in (said.get("kernels") or "").splitlines() if "not run" in line
        }

    def _object(self, source: Path) -> None:
        subprocess.run(["gcc", *FLAGS, "-c", source, "-o", self.out / f"{source.stem}.o"], check=True)

    def _said(self, test: str, room: Path, objects: list[Path]) -> str | None:
        """Link a test in a room, and run it: what it says, or None when it fails. A header there goes before ours."""
        begin = TESTS / f"test_{test}.c" if test in ALONE else self.out / f"test_{test}.o"
        wanted = [] if test in ALONE else objects
        program = room / f"test_{test}"
        command = ["gcc", f"-I{room}", *FLAGS, begin, *wanted, "-o", program, "-lm", *MORE.get(test, [])]
        subprocess.run(command, check=True, stderr=subprocess.PIPE)
        try:
            ran = subprocess.run([program, room], cwd=TESTS, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return None
        return ran.stdout if ran.returncode == 0 else None

    def _that_include(self, mutant: Mutant) -> list[Path]:
        if set(mutant.tests) <= ALONE:
            return []
        return [source for source in CSRC.rglob("*.c") if f'#include "{mutant.file}"' in source.read_text()]

    def outcome(self, mutant: Mutant) -> Outcome:
        """Compile the mutant, and run its tests until one notices."""
        if mutant.needs in self.missing:
            return Outcome.ELSEWHERE
        with tempfile.TemporaryDirectory(dir=self.out) as directory:
            room = Path(directory)
            text = (CSRC / mutant.file).read_text()
            (room / mutant.file).parent.mkdir(exist_ok=True)
            (room / mutant.file).write_text(text.replace(mutant.found, mutant.becomes))
            objects = self.objects
            for source in [room / mutant.file] if mutant.file.endswith(".c") else self._that_include(mutant):
                changed = room / f"{source.stem}.o"
                subprocess.run(["gcc", f"-I{room}", *FLAGS, "-c", source, "-o", changed], check=True)
                objects = [changed if one.name == changed.name else one for one in objects]
            notices = any(self._said(test, room, objects) is None for test in mutant.tests)
        return outcome(mutant, is_noticed=notices)


def run(listed: list[Mutant]) -> list[tuple[Mutant, Outcome]]:
    """Every mutant, and what became of it."""
    with tempfile.TemporaryDirectory(prefix="carag-mutants-") as directory, ThreadPoolExecutor(2) as pool:
        bench = Bench(Path(directory), listed)
        return list(zip(listed, pool.map(bench.outcome, listed), strict=True))


def score(results: list[tuple[Mutant, Outcome]]) -> str:
    """All outcomes in a line."""
    return f"{len(results)} mutants of the core's guards: {counted([one for _, one in results])}"


def said_by(*command: str) -> str:
    """Return the first line of what a command prints."""
    return subprocess.run(command, cwd=TESTS, check=True, capture_output=True, text=True).stdout.splitlines()[
        0
    ]


def report(results: list[tuple[Mutant, Outcome]]) -> str:
    """Write the result down: the score, by file, and every mutant that means the same with its reason."""
    lines = [
        score(results),
        f"commit {said_by('git', 'rev-parse', '--short', 'HEAD')}, {said_by('gcc', '--version')}, {FLAGS[1]}",
        "",
    ]
    for file in dict.fromkeys(mutant.file for mutant, _ in results):
        of_file = [outcome for mutant, outcome in results if mutant.file == file]
        lines.append(f"{file:18} {counted(of_file)}")
    lines += ["", "Mutants that mean the same, and why"]
    lines += [
        f"{one.file}: {one.name}\n    {one.same}" for one, outcome in results if outcome is Outcome.SAME
    ]
    return "\n".join([*lines, *unexplained(results)])


if __name__ == "__main__":
    print(report(run(mutants())))  # noqa: T201
