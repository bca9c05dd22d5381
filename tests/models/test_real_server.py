"""llama.cpp's own HTTP server, with real weights, takes what is sent and gives what is read."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from carag import Document, Engine, Outcome, Session
from carag.errors import ModelUnavailable
from carag.generation import OpenAiGenerator, Stop
from carag.generation.local import _SMOLLM2
from carag.retrieval import ConfidenceGate, JinaReranker, OpenAiEmbedder, Withheld
from tests.models.conftest import KEY_ENV, SECRET
from tests.models.llama_server import serving
from tests.models.test_openai import PASSAGES, QUESTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def llama() -> Iterator[Callable[[str], str]]:
    """Start a server of a kind, once; return its url."""
    pytest.importorskip("xllamacpp", reason="the extra 'local' is not installed")
    try:
        weights = _SMOLLM2.checked_path()
    except ModelUnavailable as absent:
        pytest.skip(f"no weights: {absent}")
    running: dict[str, str] = {}
    with ExitStack() as servers:

        def start(kind: str) -> str:
            if kind not in running:
                running[kind] = servers.enter_context(serving(weights, kind, key=SECRET, context=2048))
            return running[kind]

        yield start


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, SECRET)


def test_it_embeds(llama: Callable[[str], str]) -> None:
    one = OpenAiEmbedder("smol", url=llama("embed"), key_env=KEY_ENV, batch=2)
    texts = ["Net sales rose.", "Branches report by the fifth of May.", "word " * 1500]
    rows = one.embed_documents(texts)
    assert (3, 576) == rows.shape == (3, one.dim)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(rows[1], one.embed_query(texts[1]), atol=2e-3)


def test_it_streams_an_answer_and_says_where_it_stopped(llama: Callable[[str], str]) -> None:
    drafts = [
        OpenAiGenerator("smol", url=llama("chat"), key_env=KEY_ENV, max_tokens=6).generate(
            QUESTION, PASSAGES, Withheld(())
        )
        for _ in range(2)
    ]
    assert Stop.LENGTH is drafts[0].stop
    assert drafts[0].text
    assert drafts[0] == drafts[1]


def test_a_prompt_beyond_its_context_is_refused(llama: Callable[[str], str]) -> None:
    passages: Any = PASSAGES * 200
    one = OpenAiGenerator("smol", url=llama("chat"), key_env=KEY_ENV)
    with pytest.raises(ModelUnavailable, match=r"status 400; .* fits its context"):
        one.generate(QUESTION, passages, Withheld(()))


@pytest.mark.parametrize("kind", ["chat", "embed"])
def test_a_wrong_secret_is_told(
    llama: Callable[[str], str], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = llama(kind)
    monkeypatch.setenv(KEY_ENV, "another")
    with pytest.raises(ModelUnavailable, match="status 401; check the secret"):
        OpenAiEmbedder("smol", url=url, key_env=KEY_ENV, dim=576).embed_query("a")


def test_a_whole_engine_runs_on_it(llama: Callable[[str], str], tmp_path: Path) -> None:
    """Weights of this size answer as they like; what is returned is cited, or declined, and on record."""
    reach: dict[str, Any] = {"key_env": KEY_ENV}
    with Engine.open(
        tmp_path / "store",
        embedder=OpenAiEmbedder("smol", url=llama("embed"), **reach),
        generator=OpenAiGenerator("smol", url=llama("chat"), max_tokens=24, **reach),
        reranker=JinaReranker("smol", url=llama("rerank"), **reach),
        gate=ConfidenceGate(-1),
    ) as engine:
        engine.add([Document(id=f"d{at}", text=f"Branches report on day {at}.", bits=()) for at in range(5)])
        session = Session(role="public", purpose="public_qa")
        assert 3 == len(engine.retrieve(QUESTION, session, 3).passages)
        answer = engine.ask(QUESTION, session)
    assert answer.outcome in (Outcome.ANSWER, Outcome.DECLINE)
    assert 5 == len(answer.passages)
