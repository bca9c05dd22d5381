"""Two services with one shared store: whichever ends at any moment, nothing that a client received is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.service.kills import Kills, Load, examined
from bench.service.shared import kill_one_of_two, offices, rate
from carag import Engine
from carag.audit import PolicyChange
from carag.policy import Profile
from carag.service.grants import GrantsFile
from carag.service.problems import Problem
from tests.engine.changes import numbered

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sharing import SharedServer


@pytest.mark.parametrize(
    "rounds", [pytest.param(2, marks=pytest.mark.release), pytest.param(20, marks=pytest.mark.full)]
)
def test_no_answer_of_either_process_is_lost(tmp_path: Path, sharing: SharedServer, rounds: int) -> None:
    """One is killed while both answer, and the other continues; each answer is in the one log, and verifies with both.

    The whole log is examined each time: one sequence of records, and one tree, which continues every receipt's.
    """
    both = offices(tmp_path, sharing.url, sharing.a_schema())
    found = kill_one_of_two(both, rounds)
    assert (found.lost, found.refused, found.unaccounted, found.damaged, found.otherwise) == (0, 0, 0, [], 0)
    assert found.acknowledged > 10 * rounds
    assert found.cut >= 2 * rounds


def test_a_cell_can_be_granted_once_another_process_has_put_it_in_force(
    tmp_path: Path, sharing: SharedServer
) -> None:
    """While a file names a cell that is not in force nothing is granted; a service is never opened again for it."""
    one, other, grants = tmp_path / "one", tmp_path / "two", tmp_path / "grants.toml"
    schema = sharing.shared(one)
    Engine.open(one, profile=numbered(0), embedder="wordllama").close()
    sharing.joined(other, one, schema)
    texts = numbered(0).texts
    wider = Profile.from_texts(texts[0], texts[1].replace('"public"', '"guest"'))
    grants.write_text('schema = 1\n[[grant]]\ngroup = "all"\ncells = ["public/read"]\n')
    with Engine.open(one) as engine:
        granting = GrantsFile(grants, engine)
        assert granting.now().cells == {"all": (("public", "read"),)}
        grants.write_text('schema = 1\n[[grant]]\ngroup = "all"\ncells = ["guest/read"]\n')
        with pytest.raises(Problem, match="GRANTS_UNREADABLE"):
            granting.now()
        Engine.open(other, profile=wider, accept={"policy"}).close()
        assert granting.now().cells == {"all": (("guest", "read"),)}
        event = engine.log.record(engine.log.size - 1).event
        assert isinstance(event, PolicyChange)
        assert event.table.hex() == wider.table.sha256


@pytest.mark.release
def test_the_count_finds_records_that_the_server_lost(tmp_path: Path, sharing: SharedServer) -> None:
    """If an administrator removes the last record, an answer is lost, and nothing verifies."""
    schema = sharing.a_schema()
    one, _ = offices(tmp_path, sharing.url, schema)
    load, kills = Load(one), Kills()
    with one.served() as served:
        load.start(served.port)
        load.wait(6)
        served.process.kill()
        load.join()
    last = max(receipt.seq for receipt in load.receipts)
    sharing.alter(
        f"ALTER TABLE {schema}_log.record DISABLE TRIGGER carag_append_only",
        f"DELETE FROM {schema}_log.record WHERE seq = {last}",  # noqa: S608
        f"ALTER TABLE {schema}_log.record ENABLE ALWAYS TRIGGER carag_append_only",
    )
    examined(one.home, (one.home / "vkey").read_text().strip(), load, 0, kills)
    assert kills.lost == 1
    assert len(kills.damaged) == 1


@pytest.mark.release
def test_the_rate_of_two_services_is_of_one_log_with_a_record_per_answer(
    tmp_path: Path, sharing: SharedServer
) -> None:
    """As printed with the rates: as many records as answers, none refused, and both within their quotas."""
    both = offices(tmp_path, sharing.url, sharing.a_schema())
    found = rate(both, sharing.url, 1, 40, 0.1)
    assert (10 + 10 + 40 + 80 + 40, 40, 0, []) == tuple(
        found[name] for name in ("answers", "sample", "refused", "damaged")
    )
    assert found["answers"] == found["records"]
    assert all(0 < share <= 1 for share in found["held"])
