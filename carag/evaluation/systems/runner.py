"""Ask every system every pair, score the outputs, and append each row to disk; an interrupted run resumes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from carag.errors import InvalidArgument
from carag.evaluation.cases.adversaries import with_clearance
from carag.evaluation.row import ORACLE, PairKey, Row, write_rows
from carag.evaluation.systems.scoring import row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import TracebackType

    from carag.evaluation.cases.ground_truth import GroundTruth
    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.models import TimedEmbedder
    from carag.evaluation.systems.systems import Systems

__all__ = ["PartialRows", "Runner"]


class PartialRows:
    """Append-only file of the rows of a run; rows that an interrupted run left are not asked for again."""

    def __init__(self, out: Path, identity: str) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._path, settings = out / "rows.partial.jsonl", out / "settings.json"
        if settings.exists() and settings.read_text("utf-8") != identity:
            raise InvalidArgument(
                f"{out} holds a run with other settings; give another directory, or delete it: {settings}"
            )
        settings.write_text(identity, encoding="utf-8")
        self._rows: dict[tuple[PairKey, str], Row] = {}
        kept = b""
        if self._path.exists():
            data = self._path.read_bytes()
            kept = data[: data.rfind(b"\n") + 1]  # a kill may cut the last line
            for line in kept.splitlines():
                self._keep(Row.from_json(line))
        self._path.write_bytes(kept)
        self._file = self._path.open("a", encoding="utf-8")

    def has(self, pair: Pair, systems: Iterable[str], models: tuple[str, str, int]) -> bool:
        """Tell whether the rows of all systems for a pair are on disk."""
        session = pair.session
        key = PairKey(
            *(pair.kind, pair.question.id, session.role, session.purpose),
            *("" if session.as_of is None else session.as_of.isoformat(), *models),
        )
        return all((key, system) in self._rows for system in systems)

    def add(self, row: Row) -> None:
        """Append a row, unless there is one of the same pair and system."""
        if self._keep(row):
            self._file.write(row.to_json() + "\n")
            self._file.flush()

    def _keep(self, row: Row) -> bool:
        key = row.pair, row.system
        new = key not in self._rows
        self._rows.setdefault(key, row)
        return new

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def finish(self, path: Path) -> list[Row]:
        """Write all rows in sorted order."""
        rows = list(self._rows.values())
        write_rows(path, rows)
        return rows


@dataclass(slots=True)
class Runner:
    """Asks systems, scores their outputs, and appends the rows."""

    rows: PartialRows
    embedder: TimedEmbedder
    seed: int
    say: Callable[[str], None]
    said: dict[str, str] = field(default_factory=dict)
    """Answers without any passage, by generator and question."""

    def ask(
        self,
        truth: GroundTruth,
        pairs: Iterable[Pair],
        systems: Systems,
        names: Iterable[str],
        generator: str,
    ) -> None:
        """Ask every system every pair whose rows are not on disk."""
        pairs, names = list(pairs), tuple(names)
        for done, pair in enumerate(pairs):
            if done % 50 == 0:
                self.say(f"{generator}: {done} of {len(pairs)} pairs")
            if self.rows.has(pair, names, (self.embedder.name, generator, self.seed)):
                continue
            if pair.kind == "adversary:stale-cache":
                for name in names:
                    systems.ask(name, with_clearance(pair))
            oracle = systems.ask(ORACLE, pair)
            parametric = self._parametric(systems, pair, generator)
            # In another order for each pair: a system asked later finds passages in the page cache.
            for name in self._shuffled(names, pair):
                said = oracle if name == ORACLE else systems.ask(name, pair)
                self.rows.add(
                    row_of(
                        truth,
                        pair,
                        name,
                        said,
                        oracle,
                        embedder=self.embedder.name,
                        generator=generator,
                        seed=self.seed,
                        cost_usd=0.0 if not systems.remote else None,
                        parametric=parametric,
                    )
                )

    def _shuffled(self, names: tuple[str, ...], pair: Pair) -> list[str]:
        session = pair.session
        draw = random.Random(  # noqa: S311 - an order, no secret
            f"{self.seed} {pair.question.id} {session.role} {session.purpose} {session.as_of}"
        )
        return draw.sample(names, len(names))

    def _parametric(self, systems: Systems, pair: Pair, generator: str) -> str:
        key = f"{generator}\x00{pair.question.text}"
        if key not in self.said:
            self.said[key] = systems.empty_context(pair.question.text)
        return self.said[key]
