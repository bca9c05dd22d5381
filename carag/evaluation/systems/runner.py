"""Ask every system every pair, score the outputs, and append each row to disk; an interrupted run resumes."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from carag.errors import MALFORMED, InvalidArgument
from carag.evaluation.cases.adversaries import with_clearance
from carag.evaluation.row import ORACLE, PairKey, Row, is_own, write_rows
from carag.evaluation.systems.scoring import row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from types import TracebackType

    from carag.evaluation.cases.ground_truth import GroundTruth
    from carag.evaluation.cases.pairs import Pair
    from carag.evaluation.models import TimedEmbedder
    from carag.evaluation.systems.systems import Systems


class PartialRows:
    """Append-only file of the rows of a run; rows that an interrupted run left behind are not asked for again.

    - ``identity``: all that the rows depend on, as JSON values; a directory with a different run is refused.
    - ``own``: the source hash of each system that the user brings, by name. Systems may be added to a run; a system
      whose source has changed is asked again, and its earlier rows are kept in ``rows.before-HASH.jsonl``.
    """

    def __init__(self, out: Path, identity: Mapping[str, Any], own: Mapping[str, str]) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self._path, settings = out / "rows.partial.jsonl", out / "settings.json"
        before = _own_before(settings, identity) if settings.exists() else {}
        changed = {name for name, source in own.items() if before.get(name) != source}
        self._rows: dict[tuple[PairKey, str], Row] = {}
        kept = b""
        if self._path.exists():
            data = self._path.read_bytes()
            kept = data[: data.rfind(b"\n") + 1]  # a kill may cut the last line
            rows = [Row.from_json(line) for line in kept.splitlines()]
            if absent := sorted({row.system for row in rows if is_own(row.system)} - set(own)):
                raise InvalidArgument(
                    f"{out} contains rows of {', '.join(absent)}; name it with --system again, or name another "
                    "directory"
                )
            if any(row.system in changed for row in rows):
                # They may have cost hours or money, so they are set aside and not deleted.
                aside = f"rows.before-{hashlib.sha256(kept).hexdigest()[:12]}.jsonl"
                self._path.with_name(aside).write_bytes(kept)
                rows = [row for row in rows if row.system not in changed]
                kept = "".join(f"{row.to_json()}\n" for row in rows).encode()
            for row in rows:
                self._keep(row)
        self._path.write_bytes(kept)
        settings.write_text(json.dumps({**identity, "own": dict(own)}, sort_keys=True), encoding="utf-8")
        self._file = self._path.open("a", encoding="utf-8")

    def missing(self, pair: Pair, systems: Iterable[str], models: tuple[str, str, int]) -> tuple[str, ...]:
        """Return the systems whose row for a pair is not on disk."""
        session = pair.session
        key = PairKey(
            *(pair.kind, pair.question.id, session.role, session.purpose),
            *("" if session.as_of is None else session.as_of.isoformat(), *models),
        )
        return tuple(system for system in systems if (key, system) not in self._rows)

    def add(self, row: Row) -> None:
        """Append a row, unless there is one for the same pair and system."""
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


def _own_before(settings: Path, identity: Mapping[str, Any]) -> dict[str, str]:
    """Return the source hashes of the user's own systems in an earlier run, if its settings are the same."""
    try:
        held = json.loads(settings.read_text("utf-8"))
        before: dict[str, str] = dict(held.pop("own", {}))
    except MALFORMED as error:
        raise InvalidArgument(
            f"{settings} contains no valid settings ({error}); name another directory"
        ) from error
    if odd := sorted(name for name in {*held, *identity} if held.get(name) != identity.get(name)):
        raise InvalidArgument(
            f"{settings.parent} contains a run with other settings ({', '.join(odd)}); name another directory, or "
            "delete this one"
        )
    return before


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
        """Ask every system every pair whose row is not on disk."""
        pairs, wanted = list(pairs), tuple(names)
        for done, pair in enumerate(pairs):
            if done % 50 == 0:
                self.say(f"{generator}: {done} of {len(pairs)} pairs")
            missing = self.rows.missing(pair, wanted, (self.embedder.name, generator, self.seed))
            if not missing:
                continue
            if pair.kind == "adversary:stale-cache":
                for name in missing:
                    systems.ask(name, with_clearance(pair))
            oracle = systems.ask(ORACLE, pair)
            parametric = self._parametric(systems, pair, generator)
            # In a different order for each pair, because later systems find passages in the page cache.
            for name in self._shuffled(missing, pair):
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
                        # What your own system spends is unknown.
                        cost_usd=None if systems.remote or is_own(name) else 0.0,
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
