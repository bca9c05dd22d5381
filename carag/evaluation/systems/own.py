"""Load your own retriever or RAG, as the command line names it, and check what it returns.

``MODULE:FACTORY`` names a callable: ``factory(corpus)`` returns a system, and ``system(question, session)`` an object
or a mapping with ``ids``, ``text`` and ``outcome``. Only the command line names modules: no name read from a file is
imported.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.engine.factories import check_outside
from carag.errors import InvalidArgument
from carag.evaluation.row import OWN, SYSTEMS, K, is_own
from carag.limits import quoted

if TYPE_CHECKING:
    from carag.evaluation.cases.ground_truth import GroundTruth
    from carag.policy import Session


_SPELLING: Final = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)", re.ASCII)
_OUTCOMES: Final = ("answer", "decline", "refuse")
"""What a system may report about itself; an error is what the benchmark reports about the system."""
_FIELDS: Final = ("ids", "text", "outcome")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class CorpusPassage:
    """A passage as every system indexes it, with what its filing states; no label, and nothing from the oracle.

    ``accession_number``, ``company``, ``form`` and ``filed`` (an ISO date) are those of the filing, empty where
    unknown; for a document of your own, ``accession_number`` is its id. ``document`` is the type of the document within
    the filing, such as ``EX-99.1``.
    """

    id: str
    text: str = field(repr=False)
    accession_number: str = ""
    company: str = ""
    form: str = ""
    filed: str = ""
    ciks: tuple[int, ...] = ()
    document: str = ""


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a factory is given."""

    passages: tuple[CorpusPassage, ...]
    k: int = K  # most passages to retrieve for a question; fewer than there are admissible ones count against a system


class OwnAnswer(NamedTuple):
    """What your own system returned for a question, checked; rows are those of the ground truth."""

    rows: tuple[int, ...]
    text: str | None
    outcome: str


@dataclass(frozen=True, slots=True)
class OwnSystem:
    """A system that the user brings."""

    name: str  # in rows and reports; begins with ``own:``
    factory: Callable[[Corpus], Callable[[str, Session], object]]
    source_sha256: str  # of the file that defines it, so that another version does not resume its run

    def build(self, corpus: Corpus) -> Callable[[str, Session], object]:
        """Make the system over a corpus; InvalidArgument if the factory raises, or its result is not callable."""
        try:
            system = self.factory(corpus)
        except (Exception, SystemExit) as error:
            raise InvalidArgument(
                f"{self.name}: the factory raised {quoted(error)}; it must return a system"
            ) from error
        if not callable(system):
            raise InvalidArgument(
                f"{self.name}: the factory returned {quoted(system)}; it must return a callable that takes a question "
                "and a session"
            )
        return system


def load_own_systems(names: Iterable[str], *, not_in: Path | None = None) -> tuple[OwnSystem, ...]:
    """Import the systems that ``MODULE:FACTORY`` names; the current directory is searched last.

    No module is imported from the directory ``not_in``, such as a store, which may come from anyone. A factory's
    attribute ``name``, if it has one, names the system in rows, after ``own:``.

    Raise InvalidArgument if a name is malformed, cannot be imported or called, or two systems have the same name.
    """
    found = [_load(name, not_in) for name in names]
    for at, one in enumerate(found):
        if one.name in {other.name for other in found[:at]}:
            raise InvalidArgument(f"two systems are named {one.name}; name each --system once")
    return tuple(found)


def _load(named: str, not_in: Path | None) -> OwnSystem:
    spelt = _SPELLING.fullmatch(named)
    if spelt is None:
        raise InvalidArgument(
            f"--system {quoted(named)} is malformed; want MODULE:FACTORY, such as my_rag:factory"
        )
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.append(str(Path.cwd()))  # last, so that no file there stands in for an installed module
    if not_in is not None:
        check_outside(named, spelt[1].partition(".")[0], not_in.resolve())
    try:
        module = importlib.import_module(spelt[1])
    except (Exception, SystemExit) as error:
        raise InvalidArgument(
            f"--system {named}: importing {spelt[1]} raised {quoted(error)}; name a module in the current directory "
            "or an installed one"
        ) from error
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).is_file():
        raise InvalidArgument(f"--system {named}: {spelt[1]} has no source file; name a module that has one")
    factory = getattr(module, spelt[2], None)
    if not callable(factory):
        had = "is missing" if factory is None else f"is {quoted(factory)}"
        raise InvalidArgument(f"--system {named}: {spelt[2]} in {file} {had}; want a callable")
    return OwnSystem(_name(named, factory), factory, hashlib.sha256(Path(file).read_bytes()).hexdigest())


def _name(named: str, factory: object) -> str:
    given = getattr(factory, "name", named)
    if isinstance(given, str) and given in SYSTEMS:
        raise InvalidArgument(
            f"--system {named}: its name is {given}, which a built-in system has; give it another"
        )
    if not isinstance(given, str) or not is_own(OWN + given):
        raise InvalidArgument(
            f"--system {named}: its name is {quoted(given)}; want at most 100 ASCII letters, digits and _ . : -"
        )
    return OWN + given


def corpus_of(truth: GroundTruth) -> Corpus:
    """Return the passages that every system indexes, without labels."""
    passages = []
    for row, chunk_id in enumerate(truth.ids):
        filing = truth.filing(row)
        passages.append(
            CorpusPassage(
                id=chunk_id,
                text=truth.text(row),
                accession_number=filing.document_id,
                company=filing.company,
                form=filing.form,
                filed=filing.filed,
                ciks=filing.ciks,
                document=truth.document(row),
            )
        )
    return Corpus(tuple(passages))


def take(returned: object) -> dict[str, object]:
    """Take the fields out of what a system returned; whatever this function raises is the system's failure."""
    if isinstance(returned, Mapping):
        taken = {name: returned.get(name, _ABSENT) for name in _FIELDS}
    else:
        taken = {name: getattr(returned, name, _ABSENT) for name in _FIELDS}
    ids = taken["ids"]
    if isinstance(ids, Iterable) and not isinstance(ids, (str, bytes, Mapping, Set)):
        taken["ids"] = tuple(islice(ids, K + 1))  # one more shows that there are too many
    return taken


def checked(taken: Mapping[str, object], name: str, question: str, row_of: Mapping[str, int]) -> OwnAnswer:
    """Check the fields that a system returned for a question; InvalidArgument if one is absent or invalid."""

    def refuse(what: str, wanted: str) -> InvalidArgument:
        return InvalidArgument(f"{name}, question {question}: {what}; want {wanted}")

    for one in _FIELDS:
        if taken[one] is _ABSENT:
            raise refuse(f"{one} was not returned", "an object or a mapping with ids, text and outcome")
    ids, text, outcome = (taken[one] for one in _FIELDS)
    if not isinstance(ids, tuple):
        raise refuse(f"ids is {quoted(ids)}", "a sequence of passage ids, best first")
    for one in ids:
        if not isinstance(one, str) or one not in row_of:
            raise refuse(f"{quoted(one)} is not an id in the corpus", "ids from corpus.passages")
    if len(ids) > K:
        raise refuse(f"more than {K} ids were returned", f"at most {K} (corpus.k)")
    if len(set(ids)) < len(ids):
        twice = next(one for at, one in enumerate(ids) if one in ids[:at])
        raise refuse(f"{quoted(twice)} was returned twice", "each id once")
    if text is not None and not isinstance(text, str):
        raise refuse(f"text is {quoted(text)}", "a str, or None from a mere retriever")
    if text is not None and _SURROGATE.search(text):
        raise refuse("the text contains half a surrogate pair", "text that UTF-8 can encode")
    if not isinstance(outcome, str) or outcome not in _OUTCOMES:
        raise refuse(f"outcome is {quoted(outcome)}", f"one of {', '.join(_OUTCOMES)}")
    if outcome == "answer" and text is not None and not text.strip():
        raise refuse("the text of an answer is empty", "text, None from a mere retriever, or another outcome")
    # Our own string and not the equal member of an enumeration, which str() may write differently.
    return OwnAnswer(tuple(row_of[one] for one in ids), text, _OUTCOMES[_OUTCOMES.index(outcome)])
