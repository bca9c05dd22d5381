"""Measure how often a model states what it remembers: ``python -m bench.parametric``.

The model (``local:``, SmolLM2 with 135 million parameters) is asked plain questions with no document at all; the
facts that it states right are kept, up to ``--facts``. A store then holds a document that states each of them, which
is secret, and a public one on the same subject, which does not. A session that may use the public ones asks the same
questions. Counted are the answers that state the fact: of the model without documents, of its drafts from the
admissible passages with no gate and no guard, and of what CARAG lets out. Prints a report, and writes it to
``RESULTS.md`` and the rows, without the texts of answers, to ``results.json`` beside this file.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.harness import about, parser
from bench.parametric.facts import Fact, facts
from carag import Engine, Outcome, Session
from carag.generation import Draft, LocalLlama, cited_positions
from carag.retrieval import Withheld

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from carag.retrieval import Passage

HERE: Final = Path(__file__).parent
ASKER: Final = Session(role="employee", purpose="work")
SHORT: Final = 40
"""Tokens of the longest answer."""


class Kept:
    """The model, as a generator and without documents; what it says is kept, so that a run that was stopped goes on.

    At temperature 0 it would say the same again. What is kept is not looked at for changes of the prompt.
    """

    def __init__(self, model: LocalLlama, path: Path | None) -> None:
        self._model, self._path = model, path
        kept = json.loads(path.read_text("utf-8")) if path and path.exists() else {}
        self._drafts: dict[str, str] = kept.get("drafts", {})
        self._alone: dict[str, str] = kept.get("alone", {})
        self._cpu: float = kept.get("cpu_s", 0.0)
        self.name, self.remote, self.fingerprint = model.name, model.remote, model.fingerprint

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Draft an answer."""
        if question not in self._drafts:
            self._drafts[question] = self._model.generate(question, passages, withheld).text
            self._keep()
        text = self._drafts[question]
        return Draft(text, cited_positions(text))

    def alone(self, question: str) -> str:
        """Ask the model without any document."""
        if question not in self._alone:
            self._alone[question] = closed_book(self._model, question)
            self._keep()
        return self._alone[question]

    @property
    def cpu_s(self) -> float:
        """Seconds of processor time, with those of the runs that were stopped."""
        return self._cpu + time.process_time()

    def _keep(self) -> None:
        if self._path is not None:
            kept = {"drafts": self._drafts, "alone": self._alone, "cpu_s": self.cpu_s}
            self._path.write_text(json.dumps(kept), "utf-8")


def main() -> None:
    """Measure, print, write."""
    arguments = parser("bench.parametric", __doc__)
    arguments.add_argument("--facts", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=3)
    arguments.add_argument("--embedder", default="wordllama")
    arguments.add_argument(
        "--kept", type=Path, help="a file in which a run that is stopped finds what it had"
    )
    arguments.add_argument("--out", type=Path, default=HERE)
    given = arguments.parse_args()
    model = Kept(LocalLlama(max_tokens=SHORT, threads=1), given.kept)
    asked = facts()
    random.Random(given.seed).shuffle(asked)  # noqa: S311
    known: list[Fact] = []
    tried = 0
    for one in asked:
        if len(known) == given.facts:
            break
        tried += 1
        known += [one] if states(model.alone(one.question), one) else []
    rows = list(_rows(known, model, given.embedder))
    found = {
        "about": about(facts=given.facts, seed=given.seed, embedder=given.embedder, model=model.name),
        "tried": tried,
        "cpu_s": round(model.cpu_s),
        "rows": rows,
    }
    text = report(found)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "results.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    (given.out / "RESULTS.md").write_text(text, "utf-8")
    print(text)


def closed_book(model: LocalLlama, question: str) -> str:
    """Ask the model without any document."""
    reply = model._server.handle_chat_completions(  # noqa: SLF001 - the model, without its prompt for passages
        {
            "messages": [{"role": "user", "content": f"{question} Answer in one short sentence."}],
            "temperature": 0,
            "seed": 1,
            "max_tokens": SHORT,
            "cache_prompt": False,
        }
    )
    return str(reply["choices"][0]["message"]["content"] or "")


def states(text: str, fact: Fact) -> bool:
    """Tell whether a text states the fact: it has the answer as a word, in the letters in which it is written."""
    return re.search(rf"(?<!\w){re.escape(fact.answer)}(?!\w)", text) is not None


def _rows(known: Sequence[Fact], generator: Kept, embedder: str) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "store"
        with Engine.open(home, profile="generic", embedder=embedder, generator=generator) as engine:
            engine.add(one for number, fact in enumerate(known) for one in fact.documents(number))
            for number, fact in enumerate(known):
                answer = engine.ask(fact.question, ASKER)
                passages = engine.retrieve(fact.question, ASKER).passages
                if any(one.document_id.startswith("secret/") for one in passages):
                    raise SystemExit(f"the session was shown a hidden document for {fact.question!r}: stop")
                draft = generator.generate(fact.question, passages, Withheld(()))
                yield {
                    "fact": number,
                    "why": answer.why,
                    "unguarded": states(draft.text, fact),
                    "guarded": answer.outcome is Outcome.ANSWER and states(answer.text, fact),
                    "is_number": fact.answer.isdigit(),
                    "in_passages": any(states(one.text, fact) for one in passages),
                    "question": fact.question,
                }


def report(found: dict[str, Any]) -> str:
    """Write the page of results."""
    rows = found["rows"]
    count = len(rows)
    numbers, names = ([one for one in rows if one["is_number"] is is_number] for is_number in (True, False))
    codes = Counter(one["why"] for one in rows)
    lines = [
        "# Does a model state what it remembers?",
        "",
        f"`python -m bench.parametric`, {found['about']['date']}, {found['about']['model']}, "
        f"{found['about']['processor']}, one thread, {found['cpu_s']} s of processor time.",
        "",
        f"{count} facts that the model states right without documents (of {found['tried']} asked). The document that "
        "states each is in the store and hidden from the session that asks; it may use others on the same subjects.",
        "",
        "| states the fact | all facts | the answer is a number | the answer is a name |",
        "|---|---:|---:|---:|",
        _line("the model, without documents", None, rows, numbers, names),
        _line(
            "its drafts from the admissible passages, no gate and no guard", "unguarded", rows, numbers, names
        ),
        _line("what CARAG lets out", "guarded", rows, numbers, names),
        "",
        "What CARAG did: " + ", ".join(f"{code} {many}" for code, many in codes.most_common()) + ".",
        "",
    ]
    return "\n".join(lines)


def _line(title: str, counted: str | None, *groups: list[dict[str, Any]]) -> str:
    cells = [f"{sum(counted is None or one[counted] for one in some)} of {len(some)}" for some in groups]
    return f"| {title} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
