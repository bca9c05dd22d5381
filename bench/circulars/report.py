"""Report what is found and answered of the questions on circulars, and what a gate before the generator promises.

    python -m bench.circulars.report                                     # the page, from the rows that are kept
    CARAG_SHARED_DATA=DIR python -m bench.circulars.report --ask WORK    # asks again first, which takes long

What is asked is kept in the directory WORK part by part, so that a run which was stopped goes on from there.

Rows are in ``report/``: ids, offsets, scores and outcomes, and no word of a circular.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.circulars.gates import BEFORE, calibrations, curve, gate, promises, rows_of, scores, shipped
from bench.circulars.gold import is_held_out, read_questions
from bench.circulars.kept import CELLS, CHOSEN, EMBEDDERS, ERRORS, KEPT, OWN, SPARE, K, gold_of, read_run
from bench.circulars.selective import measured_over, share_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bench.circulars.kept import Run

__all__ = ["page"]

PAGE: Final = Path(__file__).with_name("REPORT.md")


def main() -> None:
    """Ask again if wanted, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--ask",
        type=Path,
        metavar="WORK",
        help="ask every question again that this directory holds no rows of",
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("CARAG_SHARED_DATA"))
    given = parser.parse_args()
    if given.ask:
        if given.data is None:
            parser.error(
                "set CARAG_SHARED_DATA or give --data: the directory that holds rbi/circulars.jsonl.gz"
            )
        from bench.circulars.asking import ask_all

        KEPT.mkdir(exist_ok=True)
        ask_all(given.data, read_questions(), KEPT, given.ask)
    text = page(read_run(KEPT, read_questions()))
    print(text)
    PAGE.write_text(text, encoding="utf-8")


def page(run: Run) -> str:
    """Write the page."""
    kinds = Counter(one.kind for one in run.questions.values())
    held = sum(is_held_out(family) for family in run.family.values())
    parts = [
        f"""\
# The questions on circulars: found, cited, answered

Written by `python -m bench.circulars.report` from the rows in `report/`. Change the command, not this page.

{len(run.questions)} questions on the Reserve Bank of India's circulars and directions: {kinds["on"]} that a clause
answers, {kinds["near"]} on the subject that nothing here answers, {kinds["off"]} on other subjects. A language model
wrote questions and clauses by reading; no person has reviewed them. Questions are asked once, of the circulars as they
stand, through `Engine.ask` with the profile of circulars and the default generator, which quotes up to three of eight
passages. The session is compliance/surveil, which sees replaced circulars, too: the questions are about the texts,
whatever is in force. analyst/research, which does not see them, is beside it.

A passage holds the clause if they share half of the clause's characters or half of the passage's; a twin of the clause
in another circular counts. The rule is the same for all systems, and for passages found and cited. An answer is wrong
if no passage that it cites holds the clause, so every answer to a question that nothing here answers is.

Questions whose clauses or twins share a circular are a family; a question that nothing answers is its own. Splits and
intervals (95 %, in brackets) are by family. By the SHA-256 of the family's name {len(run.questions) - held} questions
are the development, on which scores were compared and the one for the gate chosen; the other {held} are held out.""",
        _ingest(run),
        _found(run),
        _answers(run),
        gate(run),
        shipped(run),
        scores(run),
        promises(run),
        curve(run),
        _goals(run),
    ]
    return "\n\n".join(parts) + "\n"


def _ingest(run: Run) -> str:
    read = run.ingest
    ids, missing, hidden = read["ids"], read["not stored"], read["hidden"]
    quarantined = sum(read["quarantined"].values())
    findable = len(ids) - len(missing) - quarantined
    lost = len(ids) - findable - quarantined - len(missing)
    unsaid = [one for one in missing if len(read["problems"]) < len(missing) + quarantined]
    asked = [one for one in run.questions.values() if one.kind == "on"]
    closed = [one for one in asked if all(circular in hidden["analyst"] for circular, _, _ in one.gold)]
    shut = [one for one in asked if all(circular in hidden["compliance"] for circular, _, _ in one.gold)]
    why = Counter(
        bit
        for causes in read["causes"].values()
        for bit in sorted(
            {cause.split(":")[0] for cause in causes} & {"SUPERSEDED", "WITHDRAWN", "ADDRESSEES_UNKNOWN"}
        )
    )
    lines = [
        "## Read in",
        "",
        "| rows | stored and found | quarantined | without text, not stored | lost without a word | passages |",
        "|---|---|---|---|---|---|",
        f"| {len(ids)} | {findable} | {quarantined} | {len(missing)} | {lost + len(unsaid)} | {read['chunks']:,} |",
        "",
        "What the reading says of those not found:",
        "",
        *(f"- {problem}" for problem in read["problems"]),
        "",
        f"Rows without text: {', '.join(missing)}.",
        "",
        f"Of the circulars stored {len(hidden['analyst'])} are hidden from analyst/research "
        f"({', '.join(f'{bit} {count}' for bit, count in sorted(why.items()))}; a circular may have several), and "
        f"{len(hidden['compliance'])} from compliance/surveil. So {len(closed)} of the {len(asked)} questions have no "
        f"clause that analyst/research may see, and {len(shut)} none that compliance/surveil may.",
    ]
    return "\n".join(lines)


_NAMES: Final = {
    "fused-1": "CARAG, without MMR",
    "fused-1+mmr-0.3-20": "CARAG, MMR 0.3",
    "fused-1+mmr-0.5-20": "CARAG, MMR 0.5",
    "fused-1+mmr-0.7-20": "CARAG, MMR 0.7 (the profile's)",
    "top": "top 6",
    "mmr-0.3": "MMR 0.3",
    "mmr-0.5": "MMR 0.5",
}


def _found(run: Run) -> str:
    lines = [
        "## Hit@6 and support",
        "",
        "Hit@6: one of the first six passages holds the clause. Support: one that does holds a fact of the answer.",
        "LangChain's chunks are those of its recursive splitter with clause separators, 2,000 characters with 200",
        "again or 1,000 with 100, by the same embedder; all circulars are open to them, and MMR is its formula, with",
        "`lambda_mult` as the weight on relevance and `fetch_k` 20. CARAG's MMR weights the fused score so.",
    ]
    for embedder in EMBEDDERS:
        lines += [
            "",
            f"### {embedder}",
            "",
            "| system | sees | Hit@6 | support | Hit@6, held out | support, held out |",
            "|---|---|---|---|---|---|",
        ]
        for system, rows in run.rows.items():
            name, model, *rest = system.split(" ")
            if model != embedder or name == "gated":
                continue
            who, order = rest
            label = (
                _NAMES[order]
                if name == "carag"
                else f"LangChain {int(name.split('-')[1]):,}, {_NAMES[order]}"
            )
            cells = [
                _share(run, rows.values(), is_held, measure)
                for is_held in (False, True)
                for measure in (_hit, _support)
            ]
            lines.append(f"| {label} | {who} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _hit(gold: Sequence[bool], row: dict[str, Any]) -> bool:  # noqa: ARG001 - a measure's form
    return any(gold[:K])


def _support(gold: Sequence[bool], row: dict[str, Any]) -> bool:
    return any(is_gold and facts for is_gold, facts in zip(gold[:K], row["facts"][:K], strict=True))


def _share(
    run: Run,
    rows: Iterable[dict[str, Any]],
    only_held_out: bool,
    measure: Callable[[Sequence[bool], dict[str, Any]], bool],
) -> str:
    values: dict[str, list[bool]] = {}
    for row in rows:
        family = run.family[row["id"]]
        if run.questions[row["id"]].kind == "on" and (is_held_out(family) or not only_held_out):
            values.setdefault(family, []).append(measure(gold_of(run, row), row))
    return _shown(values)


def _shown(values: Mapping[str, Sequence[bool]]) -> str:
    share, low, high = share_interval(values)
    return f"{100 * share:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def _answers(run: Run) -> str:
    lines = [
        "## Answers without a gate",
        "",
        "What became of the questions, and why an answer is wrong. “Not found”: the clause is not among the first",
        "six; “another quoted”: it is, and the quotes are of others. The last two columns are of the answers that",
        "cite the clause: a passage cited that holds it holds a fact; the quoted sentences do.",
        "",
        "| embedder | session | answered | right | not found | another quoted | near answered | off answered | "
        "declined | cited clause holds the fact | the quote holds it |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    exact = total = 0
    best = [
        "Were every clause that is found also quoted, and every question on another subject declined, of the answers"
    ]
    for embedder in EMBEDDERS:
        for cell in CELLS:
            rows = run.rows[f"carag {embedder} {cell} {OWN}"]
            came: Counter[str] = Counter()
            holding: dict[str, list[bool]] = {}
            saying: dict[str, list[bool]] = {}
            for row in rows.values():
                total += len(row["cited"])
                exact += len(row["cited"]) * row["from metadata"]
                if row["code"] != "ANSWERED":
                    came[row["code"]] += 1
                    continue
                gold, kind = gold_of(run, row), run.questions[row["id"]].kind
                is_right = any(gold[at] for at in row["cited"])
                came["answered"] += 1
                came[
                    "right"
                    if is_right
                    else kind
                    if kind != "on"
                    else "missed"
                    if not any(gold[:K])
                    else "other"
                ] += 1
                if is_right:
                    family = run.family[row["id"]]
                    cited = any(gold[at] and bool(row["facts"][at]) for at in row["cited"])
                    holding.setdefault(family, []).append(cited)
                    saying.setdefault(family, []).append(bool(row["said"]))
            left = came["missed"] + came["near"]
            share = left / (left + came["right"] + came["other"])
            best.append(f"of {embedder} to {cell} {100 * share:.1f} % would still be wrong;")
            declined = ", ".join(f"{code} {came[code]}" for code in sorted(came) if code.isupper())
            figures = [came[name] for name in ("answered", "right", "missed", "other", "near", "off")]
            lines.append(
                f"| {embedder} | {cell} | {' | '.join(map(str, figures))} | {declined} | {_shown(holding)} | "
                f"{_shown(saying)} |"
            )
    return "\n".join(
        [
            *lines,
            "",
            *best,
            "what is left is clauses not found, and near misses, which only something that reads could tell.",
            "",
            f"Citations equal to the passage's metadata: {exact:,} of {total:,}.",
        ]
    )


def _goals(run: Run) -> str:
    lines = [
        "## Goals",
        "",
        "Of compliance/surveil and the chosen score; splits of all questions, and of wrong answers the mean over the",
        "splits with answers. The shipped threshold, of analyst/research, tests the similarity. Over-refusal is of the",
        "questions whose clause is among the first six. Hit@6 is the profile's against the best of LangChain's six, of",
        "all questions and then of those held out.",
        "",
        "| goal | embedder | measured | met |",
        "|---|---|---|---|",
    ]
    read = run.ingest
    said = len(read["problems"]) >= len(read["not stored"]) + sum(read["quarantined"].values())
    lines.append(f"| nothing lost without a reason | both | {len(read['ids'])} rows | {_met(said)} |")
    for embedder in EMBEDDERS:
        gated = run.rows[f"gated {embedder} compliance"].values()
        below = [row for row in gated if row["code"] in BEFORE]
        calls = sum(row["calls"] for row in below)
        lines.append(
            f"| the gate before the model, 100 % | {embedder} | {calls} calls in {len(below)} declined | "
            f"{_met(calls == 0)} |"
        )
        rows = rows_of(run, embedder, "compliance", CHOSEN)
        for error in ERRORS:
            found = measured_over(rows, error)
            promised = f"{100 * error} %"
            wrong = found.wrong
            lines += [
                f"| wrong at most {promised} and 1 point | {embedder} | "
                f"{'nothing answered' if wrong is None else f'{100 * wrong:.1f} %'}, of {100 * found.coverage:.1f} % "
                f"answered | {_met(wrong is not None and wrong <= error + SPARE)} |",
                f"| over-refusal at most 5 %, promised {promised} | {embedder} | {100 * found.over_refusal:.1f} % | "
                f"{_met(found.over_refusal <= 0.05)} |",
            ]
        lines += [_shipped_refusal(run, embedder), _against(run, embedder)]
        right = [
            (gold_of(run, row), row)
            for row in run.rows[f"carag {embedder} compliance {OWN}"].values()
            if row["code"] == "ANSWERED"
        ]
        held = [
            any(gold[at] and row["facts"][at] for at in row["cited"])
            for gold, row in right
            if any(gold[at] for at in row["cited"])
        ]
        share = sum(held) / len(held)
        lines.append(
            f"| the clause cited holds the answer, 95 % | {embedder} | {100 * share:.1f} % | {_met(share >= 0.95)} |"
        )
    return "\n".join(lines)


def _shipped_refusal(run: Run, embedder: str) -> str:
    rows = rows_of(run, embedder, "analyst", "similarity")
    least = calibrations(run)[embedder][0].threshold
    there = [row for row in rows if row.found]
    refused = sum(not row.answered or row.score < least for row in there) / len(there)
    return (
        f"| over-refusal at most 5 %, shipped threshold {least:.2f} | {embedder} | {100 * refused:.1f} % | "
        f"{_met(refused <= 0.05)} |"
    )


def _against(run: Run, embedder: str) -> str:
    def hits(system: str, only_held_out: bool) -> float:
        rows = [
            row
            for row in run.rows[system].values()
            if run.questions[row["id"]].kind == "on"
            and (is_held_out(run.family[row["id"]]) or not only_held_out)
        ]
        return sum(any(gold_of(run, row)[:K]) for row in rows) / len(rows)

    theirs = [one for one in run.rows if one.startswith("langchain") and one.split(" ")[1] == embedder]
    own = f"carag {embedder} compliance {OWN}"
    pairs = [(hits(own, half), max(hits(one, half) for one in theirs)) for half in (False, True)]
    shown = ", ".join(f"{100 * ours:.1f} against {100 * best:.1f} %" for ours, best in pairs)
    return f"| Hit@6 above LangChain's | {embedder} | {shown} | {_met(all(ours > best for ours, best in pairs))} |"


def _met(is_met: bool) -> str:
    return "yes" if is_met else "**no**"


if __name__ == "__main__":
    main()
