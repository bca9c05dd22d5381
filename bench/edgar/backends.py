"""Run the benchmark over the index and over backends, and compare: ``python -m bench.edgar.backends``.

CARAG's systems and the oracle alone are asked, the same pairs with the same seed over each place. Every field of
every row must be that of the index but for times; and receipts of the backend's log must verify with both verifiers
and name it. Servers are those of the tests, on this machine. The committed results are one line a place, and the
page is written from them by ``--page``.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import os
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.commit import commit
from bench.sections import replaced
from carag.audit import Record, Verdict, verify_receipt
from carag.backends import Checked
from carag.engine import Engine
from carag.evaluation.cases.corpus import build_corpus
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.cases.pairs import cross
from carag.evaluation.models import TimedEmbedder
from carag.evaluation.row import ORACLE, Row, read_rows
from carag.evaluation.run import NOW, Settings, run
from carag.evaluation.run_metadata import RunMetadata, processor_name
from carag.evaluation.safety.noninterference import session_view
from carag.evaluation.searched import Searched
from carag.retrieval import embedder_by_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from carag.evaluation.cases.corpus import BuiltCorpus

__all__ = ["BEGIN", "END", "asked_of_both", "compared", "judged", "section"]

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "backends.jsonl"
BEGIN: Final = (
    "<!-- bench.edgar.backends: this section is written by `python -m bench.edgar.backends --page` -->"
)
END: Final = "<!-- /bench.edgar.backends -->"
NATIVE: Final = "native"
_SYSTEMS: Final = (ORACLE, "carag-auto", "carag-certified")
_OURS: Final = "carag-certified"
_ASKED: Final = 300
"""Pairs that the index and a backend are both asked."""


def main() -> int:
    """Run over each place, in the order given, and write one line a place; or write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.edgar.backends", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("CARAG_SHARED_DATA"))
    parser.add_argument("--cache", type=Path, help="where carag bench edgar keeps its corpora")
    parser.add_argument(
        "--out", type=Path, help="a directory for the runs, one a place; a stopped one resumes"
    )
    parser.add_argument("--places", default="native,postgresql,milvus", help="the index first")
    parser.add_argument("--size", default="paper")
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--pairs", type=int, default=2_400)
    parser.add_argument("--attacks", type=int, default=20)
    parser.add_argument("--trials", type=int, default=2_000)
    parser.add_argument(
        "--worlds", type=int, default=2, help="stores rebuilt without what a session may not see"
    )
    parser.add_argument(
        "--page", action="store_true", help="write docs/benchmarks.md from the committed results"
    )
    given = parser.parse_args()
    if given.page:
        page = HERE.parents[1] / "docs" / "benchmarks.md"
        page.write_text(replaced(page.read_text("utf-8"), BEGIN, END, section(_kept())), "utf-8")
        return 0
    is_sound, at = True, commit()  # before a long run, in which the tree may move on
    for place in given.places.split(","):
        told = _run(place, given) | {"commit": at}
        print(told, flush=True)
        _keep(told)
        is_sound &= told["is_sound"]
    return 0 if is_sound else 1


def _run(place: str, given: argparse.Namespace) -> dict[str, Any]:
    out = given.out / place
    started = time.perf_counter()
    with _SERVERS[place]() as url:
        settings = Settings(
            size=given.size,
            data=given.data,
            cache=given.cache,
            embedder=given.embedder,
            pairs=given.pairs,
            built=given.pairs // 4,
            attacks=given.attacks,
            compared=100 * given.worlds,
            worlds=given.worlds,
            trials=given.trials,
            fused_trials=given.trials,
            systems=_SYSTEMS,
            backend=url,
        )
        searched, embedder = Searched.beside(url), TimedEmbedder(embedder_by_name(settings.embedder))
        say = partial(_say, place)
        rows = read_rows(run(settings, out, embedder=embedder, searched=searched, say=say))
        both: dict[str, int] = {}
        if url is not None:
            built = build_corpus(
                settings.size, cache=settings.cache, embedder=embedder, data=settings.data, say=say
            )
            both = asked_of_both(built, searched.settings(out / "searched"), out / "searched", embedder)
    about = RunMetadata.from_json((out / "run.json").read_bytes())
    told = judged(rows) | {
        "place": place,
        "backend": next((one.partition(" in ")[2] for one in about.notes if one.startswith("CARAG's")), ""),
        "chunks": about.chunks,
        "trials": sum(one.pairs for one in about.trials),
        "trials_violating": sum(one.violating for one in about.trials),
        "worlds_asked": about.worlds and about.worlds.asked,
        "worlds_differing": about.worlds and about.worlds.differing,
        "seconds": round(time.perf_counter() - started),
        "seed": settings.seed,
        "embedder": settings.embedder,
        "cpu": processor_name(),
        "load": round(os.getloadavg()[0], 2),
    }
    if place != NATIVE:
        told |= compared(read_rows(given.out / NATIVE / "rows.jsonl"), rows)
        told |= both
    return told | {"is_sound": _is_sound(told)}


def judged(rows: list[Row]) -> dict[str, Any]:
    """Count what CARAG's systems did that they may not, and how long the certified one took."""
    ours = [row for row in rows if row.system != ORACLE]
    own = [row for row in ours if row.system == _OURS]
    retrieve = [row.latency_ms["retrieve"] for row in own if row.latency_ms["retrieve"] is not None]
    total = [row.latency_ms["total"] for row in own if row.latency_ms["total"] is not None]
    return {
        "pairs": len(own),
        "violating": sum(not all(row.retrieved_admissible) for row in ours),
        "touched": sum(bool(row.touched) for row in ours),
        "canaries_planted": sum(bool(row.canaries_planted) for row in own),
        "canaries_disclosed": sum(bool(row.canaries_disclosed) for row in ours),
        "existence_disclosed": sum(row.existence_disclosed for row in ours),
        "errors": sum(row.outcome == "error" for row in ours),
        **{
            f"{stage}_p{100 * at:g}_ms": round(float(np.quantile(ms, at)), 2)
            for stage, ms in (("retrieve", retrieve), ("ask", total))
            for at in (0.5, 0.95)
        },
    }


def compared(native: list[Row], there: list[Row]) -> dict[str, int]:
    """Compare rows in all but their times."""
    by_key = [{(row.pair, row.system): _untimed(row) for row in rows} for rows in (native, there)]
    keys = set(by_key[0]) | set(by_key[1])
    return {
        "compared": len(keys),
        "differing": sum(by_key[0].get(one) != by_key[1].get(one) for one in keys),
    }


def _untimed(row: Row) -> Row:
    return dataclasses.replace(row, latency_ms=dict.fromkeys(row.latency_ms))


def asked_of_both(
    built: BuiltCorpus, opening: dict[str, Any], there: Path, embedder: TimedEmbedder
) -> dict[str, int]:
    """Ask the index and the backend, and compare all that a session gets, similarities to the last bit.

    Every receipt from the backend must verify with both verifiers, and name the backend.
    """
    truth = GroundTruth.open(built.store, now=NOW)
    with truth.store:
        for question in built.questions:
            embedder.embed_query(question.text)
        pairs = cross(truth, built.questions, built.gold, embedder.vectors, count=_ASKED, seed=1)
    script = _script()
    common: dict[str, Any] = {"create": False, "embedder": embedder, "clock": lambda: NOW}
    told = dict.fromkeys(
        ("asked", "asked_differing", "receipts_verified", "receipts_by_script", "receipts_naming"), 0
    )
    with (
        Engine.open(built.store, **common) as here,
        Engine.open(there, **common, **opening) as engine,
        tempfile.TemporaryDirectory() as scratch,
    ):
        index = engine._collection.index  # noqa: SLF001 - what a record must name
        assert isinstance(index, Checked)
        kind = index.state().backend
        for pair in pairs:
            one, other = (each.ask(pair.question.text, pair.session) for each in (here, engine))
            data = other.receipt.to_bytes()
            path = Path(scratch, "receipt.json")
            path.write_bytes(data)
            told["asked"] += 1
            told["asked_differing"] += session_view(one) != session_view(other)
            told["receipts_verified"] += verify_receipt(data, engine.vkey).verdict is Verdict.VERIFIED
            with contextlib.redirect_stdout(io.StringIO()):
                told["receipts_by_script"] += script([str(path), "--key", engine.vkey]) == 0
            said = getattr(Record.parse(other.receipt.record).event, "index", None)
            # A refusal searched nothing, and says so by having no index.
            told["receipts_naming"] += said is None or said.backend.name == kind
    return told


def _script() -> Callable[[list[str]], int]:
    """Load the verifier that imports nothing of CARAG."""
    spec = spec_from_file_location("verify_receipt", HERE.parents[1] / "scripts" / "verify_receipt.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    main: Callable[[list[str]], int] = module.main
    return main


def _say(place: str, text: str) -> None:
    print(f"{place}: {text}", flush=True)


def _is_sound(told: dict[str, Any]) -> bool:
    """Tell whether nothing that must be 0 is more, and every receipt verified."""
    zero = [
        *("violating", "touched", "canaries_disclosed", "existence_disclosed", "errors", "trials_violating"),
        *("worlds_differing", "differing", "asked_differing"),
    ]
    whole = {told[name] for name in told if name.startswith("receipts")} <= {told.get("asked")}
    return not any(told.get(name) for name in zero) and told["canaries_planted"] > 0 and whole


# ---------------------------------------------------------------- servers


@contextmanager
def _nowhere() -> Iterator[None]:
    yield None


@contextmanager
def _postgres() -> Iterator[str]:
    from tests.backends.postgres_servers import postgres_servers

    with postgres_servers(1) as (server,):
        yield server.url


@contextmanager
def _milvus() -> Iterator[str]:
    from tests.backends.milvus_server import MilvusServer

    with tempfile.TemporaryDirectory(prefix="carag-milvus-") as home:
        server = MilvusServer(Path(home))
        try:
            yield server.uri.replace("http://", "milvus://")
        finally:
            server.stop()


_SERVERS: Final[dict[str, Callable[[], Any]]] = {
    NATIVE: _nowhere,
    "postgresql": _postgres,
    "milvus": _milvus,
}

# ---------------------------------------------------------------- the page


def _keep(told: dict[str, Any]) -> None:
    """Put the result of a place where its last one was; the index itself stays with the most pairs."""
    lines = {one["place"]: one for one in (_kept() if RESULTS.exists() else [])}
    before = lines.get(told["place"])
    if before is None or told["place"] != NATIVE or before["pairs"] <= told["pairs"]:
        lines[told["place"]] = told
    kept = (lines[place] for place in _SERVERS if place in lines)
    RESULTS.write_text("".join(json.dumps(one, sort_keys=True) + "\n" for one in kept), "utf-8")


def _kept() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()]


def section(lines: list[dict[str, Any]]) -> str:
    """Write the section, without its marks."""
    first = lines[0]
    rows = [
        (
            one["backend"] or "the index here",
            f"{one['pairs']:,}",
            f"{one['violating']:,} of {2 * one['pairs']:,}",
            f"{one['canaries_disclosed']:,} of {2 * one['canaries_planted']:,}",
            f"{one['trials_violating']:,} of {one['trials']:,}",
            f"{one['differing']:,} of {one['compared']:,}" if "differing" in one else "",
            f"{one['asked_differing']:,} of {one['asked']:,}" if "asked" in one else "",
            f"{one['receipts_verified']:,}, {one['receipts_by_script']:,}" if "asked" in one else "",
            f"{one['retrieve_p50_ms']:g}, {one['retrieve_p95_ms']:g}",
            f"{one['ask_p50_ms']:g}, {one['ask_p95_ms']:g}",
        )
        for one in lines
    ]
    headings = (
        *("searched in", "pairs", "CVR by query", "canaries disclosed", "random pairs that violate"),
        *("rows that differ from the index's", "answers that differ in any bit"),
        "of these, receipts verified by ours and by the script",
        *("retrieval p50, p95, ms", "answer p50, p95, ms"),
    )
    table = [headings, ["---"] * len(headings), *rows]
    return (
        f"{first['chunks']:,} chunks; (question, session) pairs, attacks among them, asked of `carag-auto` and of "
        f"`carag-certified`; {first['embedder']}, seed {first['seed']}; commit "
        f"{', '.join(dict.fromkeys(one['commit'] for one in lines))}, {first['cpu']}, one core for engine and "
        "server, beside other work. A row differs if any of its fields but times does: ids in their order, outcome, "
        "the hash of the text, citations; the index is asked the same pairs each time. Each receipt names its "
        "backend. Attacks, and stores rebuilt without what a session may not see, have collections of their own "
        "there.\n\n"
        + "\n".join("| " + " | ".join(row) + " |" for row in table)
        + "\n\nMade by `python -m bench.edgar.backends --data DIR --cache DIR --out OUT`; one place by `carag bench "
        "edgar --backend URL --data DIR --out OUT`."
    )


if __name__ == "__main__":
    sys.exit(main())
