"""One law over every public argument: whatever comes gives a result or a clear error of ours, and nothing unforeseen.

A *door* is one argument of one public call, with all others as they should be. What is a valid value of it is for
the tests of its room; here the values are whatever a caller's own data may hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carag import Document, Engine, Index, Mask, Policy, Session, TextIndex, policy_word
from carag.errors import CaragError, UnlabelledWarning
from carag.labelling.document import Act, ActKind
from carag.policy import PolicyTable, Where, as_of_minutes, bits_of, infer, parse_moment
from carag.policy.restrictions import DealWindow, LawfulBasis, LegalBasis, WallCrossing

if TYPE_CHECKING:
    from pathlib import Path

Door = Callable[[Any], object]


class Text(str):
    """A subclass, as frameworks have them."""

    __slots__ = ()


PLAIN = [
    *(None, True, False, 0, 1, -1, 7, 1 << 31, 1 << 32, 1 << 63, 1 << 64, 10**400, -(10**400)),
    *(0.0, -0.0, 0.5, 2024.0, 1e30, 1e308, float("nan"), float("inf"), -float("inf"), 1j),
    *(
        "",
        " ",
        "x",
        "2024",
        "1e400",
        "9" * 400,
        "\0",
        "\ud800",
        "\u202e",
        "a\nb",
        "é" * 300,
        Text("x"),
        b"",
        b"x",
    ),
    *(
        "2024-02-30",
        "2024-06-01",
        "9999-12-31T23:59:59+00:00",
        "0001-01-01T00:00:00+23:59",
        "INTERNAL",
        "employee",
    ),
    *(date.min, date.max, datetime.min, datetime.max, datetime(2024, 6, 1)),  # noqa: DTZ001, DTZ901 - without a zone
    *(datetime.min.replace(tzinfo=timezone(timedelta(hours=23))), datetime.max.replace(tzinfo=UTC)),
    *(timedelta.max, timedelta.min, timedelta(0), timedelta(days=40), timedelta(microseconds=1)),
    *(Decimal("NaN"), Decimal("1e400"), Fraction(1, 3), range(3), object(), int, len, ...),
    *(
        np.int64(5),
        np.uint64(1 << 63),
        np.float32("nan"),
        np.str_("x"),
        np.datetime64("2024-06-01"),
        np.bool_(1),
    ),
    *(np.empty(0), np.ones(3), np.full(3, np.nan), np.ones((2, 2, 2)), np.array(["x"]), np.array([object()])),
    *(
        Mask(required=1),
        Policy(Mask()),
        Session(role="employee", purpose="work"),
        Document(id="x", text="x", bits=[]),
    ),
]
ANY = st.one_of(
    st.sampled_from(PLAIN),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.datetimes(timezones=st.timezones() | st.none()),
    st.recursive(
        st.sampled_from(PLAIN),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(
                st.sampled_from(["year", "gte", "lt", "x", "", "\0", Text("year")]), inner, max_size=3
            ),
        ),
        max_leaves=5,
    ),
)

ASKER = Session(role="employee", purpose="work")
MOMENT = datetime(2024, 6, 1, tzinfo=UTC)
KINDS = {"team": "text", "year": "number", "dated": "date", "final": "boolean"}


def doors(call: Callable[..., object], **usual: Any) -> dict[str, Door]:
    """Return a door for each argument of a call, with the others as usual."""
    name = getattr(call, "__qualname__", repr(call))
    return {f"{name}({one})": lambda v, one=one: call(**{**usual, one: v}) for one in usual}


def plain_doors() -> dict[str, Door]:
    """Sessions, documents, policies, words, times and narrowings."""
    table = PolicyTable.shipped("generic")
    asked = {one.name: one.default for one in fields(Session) if one.init}
    narrowed = dict.fromkeys(("allow_entities", "conversation", "cooling"))
    sets = dict.fromkeys(("restricted", "watched", "residency", "intents"), ())
    document = {
        one.name: one.default
        for one in fields(Document)
        if one.init and one.name not in ("facts", "metadata")
    }
    return {
        **doors(Session, **{**asked, "role": "employee", "purpose": "work"}),
        **doors(ASKER.narrow, **narrowed, **sets),
        **doors(DealWindow, entity=7, begins=date(2024, 6, 1), ends=date(2024, 7, 1)),
        **doors(WallCrossing, entity=7, purpose="work"),
        **doors(
            LegalBasis,
            basis=LawfulBasis.CONSENT,
            purposes=frozenset(),
            objections=frozenset(),
            restrictions=frozenset(),
        ),
        **doors(Document, **{**document, "id": "x", "text": "x", "bits": []}),
        **{
            f"Document({one})": lambda v, one=one: Document(**{"id": "x", "text": "x", one: v})
            for one in ("facts", "metadata")
        },
        **{
            f"Document({one} of x)": lambda v, one=one: Document(**{"id": "x", "text": "x", one: {"x": v}})
            for one in ("facts", "metadata")
        },
        **doors(Act, kind=ActKind.REPLACES, name="x", since=None),
        **doors(Mask, required=0, forbidden=0),
        **{
            f"Policy({one})": lambda v, one=one: Policy(Mask(), **{one: v})
            for one in ("allow_entities", "deny_entities")
        },
        "Policy": Policy,
        "policy_word": policy_word,
        "bits_of": bits_of,
        "parse_moment": parse_moment,
        "as_of_minutes": as_of_minutes,
        "Where.of": lambda v: Where.of(v, KINDS),
        **{f"Where.of({name})": lambda v, name=name: Where.of({name: v}, KINDS) for name in KINDS},
        **{
            f"Where.of({name}, gte)": lambda v, name=name: Where.of({name: {"gte": v}}, KINDS)
            for name in KINDS
        },
        "PolicyTable.from_toml": PolicyTable.from_toml,
        "infer(session)": lambda v: infer(v, table, now=MOMENT),
        "infer(now)": lambda v: infer(ASKER, table, now=v),
    }


def index_doors() -> dict[str, Door]:
    """The index of vectors and that of words."""
    index, words = Index(3), TextIndex()
    index.add(np.eye(3), policy_word(np.arange(3)))
    words.add([0, 1], [0, 1], [["noon"], ["roof", "noon"]])
    words.label([0, 1], [0, 1], policy_word(np.arange(2)))
    when = {"as_of": None, "alive_at": None}
    rows = {"public_at": None, "expires_at": None, "entities": None}
    search = {"plan": "auto", "ef_search": None, "threads": None, "exact_limit": 0, "also_hidden": 0}
    return {
        **doors(Index, dim=3, M=32, ef_construction=200, seed=0, dtype="float32", views=0),
        **doors(
            index.add, vectors=np.eye(3), words=policy_word(np.arange(3)), keys=None, threads=None, **rows
        ),
        **doors(index.search, queries=np.ones(3), k=2, policy=Mask(), **when, **search),
        **doors(index.count, policy=Mask(), **when),
        **doors(index.similarities, query=np.ones(3), keys=[0]),
        **doors(index.relabel, keys=[0], words=policy_word(np.arange(1))),
        **doors(index.relabel_where, policy=Mask(), set=0, clear=0, **when),
        **doors(index.delete, keys=[]),
        **doors(index.reserve, rows=1),
        **doors(index.consolidate, threads=None),
        **doors(words.add, chunks=[], documents=[], tokens=[], headings=None),
        **doors(words.label, keys=[], chunks=[], words=[], closes=(), **rows),
        **doors(
            words.search, terms=["noon"], k=1, policy=Mask(), k1=0.9, b=0.4, floor=0.0, documents=None, **when
        ),
        **doors(words.count, terms=["noon"], policy=Mask(), **when),
        **doors(words.documents, policy=Mask(), **when),
        **doors(words.admissible, policy=Mask(), documents=[0], **when),
        **doors(words.delete, chunks=[]),
        **doors(words.close_labels, keys=[]),
    }


def engine_doors(engine: Engine) -> dict[str, Door]:
    """An engine: questions, documents and explanations."""
    question = "When does the canteen open?"
    found = engine.retrieve(question, ASKER)
    return {
        **doors(engine.ask, question=question, session=ASKER, where=None),
        **doors(engine.retrieve, question=question, session=ASKER, k=3, where=None),
        "Engine.ask(where year)": lambda v: engine.ask(question, ASKER, where={"year": v}),
        "Engine.retrieve(where year, lt)": lambda v: engine.retrieve(
            question, ASKER, where={"year": {"lt": v}}
        ),
        **doors(engine.explain, chunk_id="a:00000", session=ASKER),
        **doors(engine.contents.label_history, chunk_id="a:00000"),
        **doors(engine.record_answer, retrieval=found, text="At noon [1].", model="x"),
        **doors(engine.add, documents=[], by="x"),
        **doors(engine.remove, ids=[], by="x"),
    }


def stays_foreseen(name: str, door: Door, value: object) -> None:
    """Fail on any error but our own; of one for memory, numpy's and the core's are as they should be."""
    try:
        door(value)
    except (CaragError, MemoryError, UnlabelledWarning):
        return
    except Exception as error:
        raise AssertionError(
            f"{name} of {type(value).__name__} {str(value)[:80]!a}: {type(error).__name__}: {error}"
        ) from error


def law(found: dict[str, Door], count: int) -> None:
    names = sorted(found)

    @settings(max_examples=count, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(names), ANY)
    def run(name: str, value: object) -> None:
        stays_foreseen(name, found[name], value)

    run()


COUNTS = [1_000, pytest.param(40_000, marks=pytest.mark.full)]


@pytest.mark.parametrize("count", COUNTS)
def test_a_policy_and_a_document_take_any_value(count: int) -> None:
    """Or refuse it as an invalid argument."""
    law(plain_doors(), count)


@pytest.mark.parametrize("count", COUNTS)
def test_an_index_takes_any_value(count: int) -> None:
    """That of vectors and that of words."""
    law(index_doors(), count)


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.full)])
def test_an_engine_takes_any_value(count: int, tmp_path: Path) -> None:
    """Questions, narrowings, documents and what is asked of them."""
    with Engine.open(tmp_path / "store", profile="generic", embedder="wordllama") as engine:
        engine.add(
            [Document(id="a", text="The canteen opens at noon.", bits=["INTERNAL"], metadata={"year": 2024})]
        )
        law(engine_doors(engine), count)
