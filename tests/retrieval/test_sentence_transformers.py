"""The adapter of sentence-transformers, against a double of the package: PyTorch is too large to ask for here."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from carag.errors import InvalidArgument, MissingExtra, ModelUnavailable
from carag.retrieval import embedder_by_name

LOADED: list[dict[str, Any]] = []


READ: list[str] = []
MOST = 12
"""Tokens that the double reads: ten letters and the two around them."""


def tokens(text: str, *, truncation: bool, verbose: bool) -> dict[str, list[int]]:
    assert (False, False) == (truncation, verbose)
    return {"input_ids": [0, *map(ord, text), 0]}


class Model:
    """What ``SentenceTransformer`` offers, with the names of its parameters, in version 5."""

    def __init__(self, path: str, *, device: str, local_files_only: bool, trust_remote_code: bool) -> None:
        LOADED.append({"local_files_only": local_files_only, "trust_remote_code": trust_remote_code})
        if "broken" in Path(path, "config.json").read_text():
            raise OSError(f"no model in {path}")

        self.max_seq_length = MOST
        self.tokenizer = tokens

    def get_sentence_embedding_dimension(self) -> int:
        return 3

    def encode(
        self,
        sentences: list[str],
        *,
        batch_size: int,
        convert_to_numpy: bool,
        normalize_embeddings: bool,
        show_progress_bar: bool,
    ) -> Any:
        assert (True, True, False) == (convert_to_numpy, normalize_embeddings, show_progress_bar)
        if "fail" in sentences:
            raise RuntimeError("a text in a message")
        READ.extend(sentences)
        rows = [[float(len(text)), 1.0, float("nan") if text == "nan" else 2.0] for text in sentences]
        return np.array(rows, np.float32)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = ModuleType("sentence_transformers")
    package.SentenceTransformer = Model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text("{}")
    return tmp_path / "model"


def made(home: Path, **arguments: Any) -> Any:
    return embedder_by_name(f"sentence-transformers:{home}", arguments)


def test_it_embeds_with_the_prefixes_and_gives_unit_rows(home: Path) -> None:
    one = made(home, query_prefix="q: ")
    rows = one.embed_documents(["a", "bb"])
    assert ((2, 3), np.float32, False) == (rows.shape, rows.dtype, one.remote)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(one.embed_query("a"), one.embed_documents(["q: a"])[0])
    assert {"local_files_only": True, "trust_remote_code": False} == LOADED[-1]


def test_the_fingerprint_is_made_of_every_file_and_both_prefixes(home: Path) -> None:
    prints = {made(home).fingerprint, made(home, query_prefix="a").fingerprint}
    prints.add(made(home, document_prefix="a").fingerprint)
    (home / "tokenizer.json").write_text("{}")
    prints.add(made(home).fingerprint)
    (home / "tokenizer.json").write_text("{ }")
    prints.add(made(home).fingerprint)
    assert 5 == len(prints)
    assert made(home).fingerprint == made(home.rename(home.parent / "moved")).fingerprint


def test_what_fails_is_unavailable_and_says_nothing_of_the_text(home: Path) -> None:
    with pytest.raises(ModelUnavailable, match="RuntimeError") as raised:
        made(home).embed_query("fail")
    assert "message" not in str(raised.value)
    with pytest.raises(InvalidArgument, match="not finite"):
        made(home).embed_query("nan")
    with pytest.raises(ModelUnavailable, match="is neither a directory"):
        made(home / "absent")
    (home / "config.json").write_text("broken")
    with pytest.raises(ModelUnavailable, match="OSError"):
        made(home)


def test_no_end_of_a_long_text_is_lost_and_a_short_one_keeps_its_vector(home: Path) -> None:
    one = made(home, document_prefix="p:")
    short = one.embed_documents(["eight le"])
    READ.clear()
    both = one.embed_documents(["twenty-one letters in", "eight le"])
    assert all(len(tokens(text, truncation=False, verbose=False)["input_ids"]) <= MOST for text in READ)
    assert [text.removeprefix("p:") for text in READ] == ["twenty-", "one let", "ters in", "eight le"]
    np.testing.assert_array_equal(both[1], short[0])
    windows = one.embed_documents(["twenty-", "one let", "ters in"])
    mean = windows.sum(axis=0) / np.linalg.norm(windows.sum(axis=0))
    np.testing.assert_allclose(both[0], mean, atol=1e-6)
    with pytest.raises(InvalidArgument, match="shorter prefix"):
        made(home, query_prefix="ten letter").embed_query("a long text")


def test_a_model_with_a_limit_that_cannot_be_counted_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["sentence_transformers"]
    monkeypatch.setattr(
        module,
        "SentenceTransformer",
        type("Mute", (Model,), {"tokenizer": property(lambda _: None, lambda *_: None)}),
    )
    with pytest.raises(InvalidArgument, match="no tokenizer"):
        made(home)
    monkeypatch.setattr(sys.modules[__name__], "MOST", float("inf"))
    assert made(home).embed_documents(["a text of any length"]).shape == (1, 3)


def test_without_the_package_the_extra_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"carag-engine\[sentence-transformers\]"):
        made(home)
