"""``carag ask --where``: conditions on the command line narrow what is searched, and a slip narrows nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from carag.cli import Exit
from carag.cli.app import run

MEMO = "---\nclassification: public\ndepartment: {}\nyear: {}\n---\nThe canteen of {} opens at noon.\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Memos of two departments and three years."""
    home = tmp_path_factory.mktemp("where")
    folder = home / "memos"
    folder.mkdir()
    for department, year in (("Treasury", 2023), ("Treasury", 2024), ("Risk", 2025)):
        (folder / f"{department}{year}.md").write_text(MEMO.format(department, year, department))
    made = str(home / "store")
    words = ["ingest", str(folder), "--store", made, "--profile", "generic", "--embedder", "wordllama"]
    assert run(words) == Exit.OK
    return made


def asked(store: str, *where: str) -> list[str]:
    words = [word for one in where for word in ("--where", one)]
    return [
        *("ask", "When does the canteen open?", "--store", store),
        *("--role", "public", "--purpose", "read", "--json", *words),
    ]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ([], {"Risk2025", "Treasury2023", "Treasury2024"}),
        (["department=treasury"], {"Treasury2023", "Treasury2024"}),
        (["department=treasury", "year>=2024"], {"Treasury2024"}),
        (["year>2023", "year<2025"], {"Treasury2024"}),
        (["year=2023", "year=2025"], {"Treasury2023", "Risk2025"}),
        (["department=Legal"], set()),
    ],
)
def test_what_fits_is_found(
    store: str, where: list[str], found: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Values of one field are alternatives; bounds and fields must all hold."""
    run(asked(store, *where))
    said = json.loads(capsys.readouterr().out)
    assert {Path(one["chunk_id"].split(":")[0]).stem for one in said["passages"]} == found


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (["department"], "want FIELD=VALUE"),
        (["=treasury"], "want FIELD=VALUE"),
        (["department="], "want FIELD=VALUE"),
        (["deparment=treasury"], "did you mean 'department'"),
        (["year>=soon"], "want a finite number"),
        (["department>a"], "a range for department, which is a text"),
        (["year=2024", "year>=2024"], "contradicts itself about 'year'"),
        (["year>=2024", "year>=2025"], "contradicts itself about 'year'"),
    ],
)
def test_a_slip_is_refused(
    store: str, where: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what was meant, perhaps."""
    assert run(asked(store, *where)) == Exit.BAD_INPUT
    assert message in capsys.readouterr().err.replace("\n", " ")
