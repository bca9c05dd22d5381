"""What was in an index is in the store: the same rows with the same similarities, under every policy."""

from __future__ import annotations

import hashlib
from itertools import cycle, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bench.adopting.peers import MAPPING, NAME, SOURCES, Written, quiet
from bench.adopting.peers import drawn as drawn_rows
from carag import Engine, Session
from carag.adopting import Mapping, adopt, source_of, spooled
from carag.errors import MissingExtra
from carag.retrieval import AdoptedEmbedder
from tests.sizes import examples
from tests.test_extras import without

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from carag.adopting import AdoptReport
    from tests.postgres import PostgresRun

ROWS, K, DIM = 300, 10, 16
QUESTIONS = examples(1_000) // 4
CELLS = {
    ("public", "read"): lambda row: (
        row["level"] == "public" and not row["personal"] and not row["privileged"]
    ),
    ("employee", "work"): lambda row: (
        row["level"] != "secret" and not row["personal"] and not row["privileged"]
    ),
    ("counsel", "advise"): lambda row: not row["personal"],
    ("compliance", "review"): lambda row: True,
}
WHERE: list[tuple[dict[str, Any] | None, Any]] = [
    (None, lambda row: True),
    ({"department": "sales"}, lambda row: row["department"] == "sales"),
    ({"department": ["sales", "treasury"]}, lambda row: True),
    ({"year": {"gte": 2023}}, lambda row: row["year"] >= 2023),
    (
        {"year": 2021, "department": "treasury"},
        lambda row: (row["year"], row["department"]) == (2021, "treasury"),
    ),
]
POLICIES = [*product(CELLS, WHERE)]
assert 20 == len(POLICIES)

PACKAGES = {
    "pgvector": ("psycopg", "psycopg"),
    "chroma": ("chromadb", "chromadb"),
    "qdrant": ("qdrant_client", "qdrant-client"),
    "lancedb": ("lancedb", "lancedb"),
    "faiss": ("faiss", "faiss-cpu"),
}

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(params=SOURCES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Peer:
    """A source that its own library writes, and that nobody writes to afterwards."""

    def __init__(self, kind: str, folder: Path, run: PostgresRun | None) -> None:
        self._kind, self._folder = kind, folder
        self._database = None if run is None else run.database()

    def write(self, rows: list[dict[str, Any]]) -> Written:
        if self._database is None:
            return SOURCES[self._kind](rows, self._folder)
        written = SOURCES[self._kind](rows, self._folder, self._database.url)
        role = f"only_{self._database.name}"  # whose writes would fail
        with self._database.connect() as admin:
            if not admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
                admin.execute(f"CREATE ROLE {role} LOGIN")
            admin.execute(f"GRANT SELECT ON {NAME} TO {role}")
        return written._replace(address=written.address.replace("//postgres@", f"//{role}@"))

    def state(self) -> object:
        """Return every row's version, or the hash of each file."""
        if self._database is not None:
            with self._database.connect() as admin:
                return admin.execute(
                    "SELECT xmin::text, ctid::text, id FROM handbook ORDER BY ctid"
                ).fetchall()
        files = sorted(one for one in self._folder.rglob("*") if one.is_file())
        return [(one, hashlib.sha256(one.read_bytes()).digest()) for one in files]


@pytest.fixture
def peer(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Peer:
    package, reason = PACKAGES[kind]
    pytest.importorskip(package, reason=f"pip install {reason}")
    run = request.getfixturevalue("postgres_run") if kind == "pgvector" else None
    return Peer(kind, tmp_path / "source", run)


def drawn(rows: int) -> list[dict[str, Any]]:
    return drawn_rows(rows, DIM)


def questions() -> Iterator[Any]:
    rng = np.random.default_rng(1)
    while True:
        one = rng.standard_normal(DIM).astype(np.float32)
        yield one / np.linalg.norm(one)


def asked(store: Path) -> Engine:
    """Open a store whose questions are numbers of the vectors drawn."""
    encode = np.array([one for one, _ in zip(questions(), range(QUESTIONS), strict=False)])
    embedder = AdoptedEmbedder("angles", DIM, encode=lambda text: encode[int(text)])
    return Engine.open(store, profile="generic", embedder=embedder, ranker="dense")


def adopted(written: Written, engine: Engine, tmp_path: Path, **more: bool) -> AdoptReport:
    file = tmp_path / "mapping.toml"
    file.write_text(MAPPING)
    mapping = Mapping.read(file)
    with quiet(), source_of(written.address, mapping.wanted) as source, spooled(source, mapping) as spool:
        return adopt(engine, spool, "angles", **more)


def found(engine: Engine, question: int, cell: tuple[str, str], where: Any = None) -> list[tuple[str, float]]:
    session = Session(role=cell[0], purpose=cell[1])
    passages = engine.retrieve(str(question), session, K, where=where).passages
    return [(one.accession_number, one.similarity) for one in passages]


def listed(engine: Engine) -> set[str]:
    """All that somebody who may see everything finds."""
    session = Session(role="compliance", purpose="review")
    return {one.accession_number for one in engine.retrieve("0", session, 400).passages}


def same(found: list[tuple[str, float]], wanted: list[tuple[str, float]]) -> bool:
    return [id_ for id_, _ in found] == [id_ for id_, _ in wanted] and np.allclose(
        [one for _, one in found], [one for _, one in wanted], rtol=0, atol=1e-5
    )


def test_every_question_finds_what_filtering_first_finds(peer: Peer, tmp_path: Path) -> None:
    """Under each of 20 policies; and without a policy's limits, what the source's own exact search finds."""
    rows = drawn(ROWS)
    written = peer.write(rows)
    vectors = np.array([row["vector"] for row in rows], np.float64)
    before = peer.state()
    with asked(tmp_path / "store") as engine:
        report = adopted(written, engine, tmp_path)
        assert (report.added, report.embedded, report.problems) == (ROWS, 0, [])
        assert peer.state() == before
        for number, question, (cell, (where, holds)) in zip(
            range(QUESTIONS), questions(), cycle(POLICIES), strict=False
        ):
            similarities = vectors @ question
            open_ = [at for at in np.argsort(-similarities) if CELLS[cell](rows[at]) and holds(rows[at])]
            wanted = [(rows[at]["id"], float(similarities[at])) for at in open_[:K]]
            assert same(found(engine, number, cell, where), wanted), (number, cell, where)
            assert same(
                found(engine, number, ("compliance", "review")),
                [(a, b) for a, b in written.search(question, K)],
            )


def test_a_second_run_takes_the_difference(peer: Peer, tmp_path: Path) -> None:
    """What is new, another text, another vector, another label; what is gone is withdrawn only when that is asked."""
    rows = drawn(20)
    with asked(tmp_path / "store") as engine:
        assert adopted(peer.write(rows), engine, tmp_path).added == 20
        again = peer.write(rows)
        assert adopted(again, engine, tmp_path).unchanged == 20
        rows[0]["text"] = "Something else."
        rows[1]["vector"] = rows[5]["vector"]
        rows[2]["level"] = LEVEL_OF[rows[2]["level"]]
        later = peer.write([*rows[:-2], {**rows[3], "id": "20", "text": "New."}])
        report = adopted(later, engine, tmp_path)
        assert (report.added, report.changed, report.unchanged) == (1, 3, 15)
        assert (len(report.vanished), report.removed) == (2, 0)
        assert set(gone := report.vanished) <= listed(engine)
        report = adopted(later, engine, tmp_path, remove_vanished=True)
        assert (report.vanished, report.removed, report.changed) == (gone, 2, 0)
        assert 19 == len(listed(engine))
        assert not listed(engine) & set(gone)
        assert [] == adopted(later, engine, tmp_path).vanished


LEVEL_OF = {"public": "secret", "internal": "secret", "confidential": "secret", "secret": "public"}


@pytest.mark.parametrize(
    ("scheme", "package"),
    [("chroma", "chromadb"), ("qdrant", "qdrant-client"), ("lancedb", "lancedb"), ("faiss", "faiss-cpu")],
)
def test_a_missing_package_is_named(
    scheme: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that installs it, before anything is read."""
    without(monkeypatch, package)
    with (
        pytest.raises(MissingExtra, match=rf"needs {package}.*pip install 'carag-engine\[{scheme}\]'"),
        source_of(f"{scheme}:{tmp_path}", Mapping().wanted),
    ):
        pass
