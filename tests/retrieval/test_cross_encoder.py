"""Any sequence classifier in ONNX scores pairs as its graph says; anything else is refused at once."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from tokenizers import processors

from carag import Engine, Session
from carag.errors import InvalidArgument, ModelUnavailable
from carag.retrieval import CrossEncoder, reranker_by_name
from carag.retrieval.cross_encoder import _EXTERNAL
from tests.engine.documents import Counting, document
from tests.retrieval.classifier import COLUMNS, PLACES, TOKENS, WORDS, expected, folder, graph, tokenizer

NLI = ("contradiction", "neutral", "entailment")
TEXTS = st.lists(st.sampled_from(WORDS[4:]), min_size=1, max_size=90).map(" ".join)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def single(home: Path) -> CrossEncoder:
    return CrossEncoder(folder(home / "single"), max_tokens=40)


@pytest.fixture(scope="module")
def judge(home: Path) -> CrossEncoder:
    config = {"id2label": dict(enumerate(NLI))}
    return CrossEncoder(folder(home / "judge", graph(3), config), label="entailment", first="text")


# --- laws ---


@given(st.lists(TEXTS, max_size=4))
def test_scores_lie_in_0_to_1_and_each_is_that_of_its_text_alone(
    single: CrossEncoder, texts: list[str]
) -> None:
    scores = single.rerank("w1 w2 w3", texts)
    assert len(texts) == len(scores)
    assert all(0 <= score <= 1 for score in scores)
    assert [single.rerank("w1 w2 w3", [text])[0] for text in texts] == scores
    assert scores[::-1] == single.rerank("w1 w2 w3", texts[::-1])


@given(st.lists(st.sampled_from(WORDS[4:]), min_size=1, max_size=20).map(" ".join))
def test_a_pair_that_fits_has_the_score_that_numpy_gives(
    single: CrossEncoder, judge: CrossEncoder, text: str
) -> None:
    question = "w1 w2 w3"
    np.testing.assert_allclose(single.rerank(question, [text]), expected(question, text), rtol=1e-5)
    rows = judge.probabilities(question, [text])
    np.testing.assert_allclose(rows[0], expected(text, question, 3), rtol=1e-4)  # the evidence stands first
    assert judge.rerank(question, [text]) == [rows[0, 2]]


@given(st.lists(TEXTS, max_size=4))
def test_probabilities_of_a_text_sum_to_1(judge: CrossEncoder, texts: list[str]) -> None:
    rows = judge.probabilities("w1 w2", texts)
    assert ((len(texts), 3), np.float64) == (rows.shape, rows.dtype)
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-12)
    assert NLI == judge.labels


@pytest.mark.parametrize("rows", ["batch", 1, 3])
@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
def test_padding_and_a_fixed_batch_change_no_score(
    home: Path, single: CrossEncoder, rows: int | str, kind: int
) -> None:
    texts = [" ".join(WORDS[4 : 4 + count]) for count in (1, 7, 30, 44, 60)]
    fixed = CrossEncoder(folder(home / f"fixed-{rows}-{kind}", graph(1, rows, 40, kind)))
    np.testing.assert_allclose(fixed.rerank("w5 w6", texts), single.rerank("w5 w6", texts), rtol=1e-5)


def test_scores_do_not_depend_on_threads(single: CrossEncoder, home: Path) -> None:
    texts = [" ".join(WORDS[4 : 5 + count]) for count in range(50)]
    threaded = CrossEncoder(str(home / "single"), max_tokens=40, threads=3)
    assert single.rerank("w5", texts) == threaded.rerank("w5", texts)
    assert single.fingerprint == threaded.fingerprint


# --- windows ---


@given(st.integers(1, 300), st.integers(1, 20))
def test_windows_fit_are_the_fewest_and_cut_no_statement_that_the_overlap_holds(
    single: CrossEncoder, length: int, asked: int
) -> None:
    """Numbered words show where a window is: each is within the model's tokens, and the question is whole."""
    room = 40 - 3 - asked
    overlap = room // 4
    ids = [4 + at % 59 for at in range(length)]
    (windows,) = single._windows(" ".join(["w59"] * asked), [" ".join(WORDS[at] for at in ids)])
    starts, stands = [], 0
    for window in windows:
        assert [2, *[63] * asked, 3] == window.ids[: asked + 2]
        held = window.ids[asked + 2 : -1]
        assert len(held) <= room
        while ids[stands : stands + len(held)] != held:
            stands += 1
            assert stands < length, "a window holds what the text does not"
        starts.append((stands, stands + len(held)))
    assert (0, length) == (starts[0][0], starts[-1][1])
    assert all(b[0] <= a[1] - overlap for a, b in pairwise(starts))
    fewest = 1 if length <= room else -(-(length - overlap) // (room - overlap))
    assert fewest == len(windows)


def test_the_best_window_counts(single: CrossEncoder) -> None:
    text = " ".join(WORDS[4:] * 3)
    (windows,) = single._windows("w1 w2", [text])
    parts = [" ".join(WORDS[at] for at in window.ids[4:-1]) for window in windows]
    assert len(parts) > 3
    np.testing.assert_allclose(
        max(expected("w1 w2", part)[0] for part in parts), single.rerank("w1 w2", [text])[0], rtol=1e-5
    )


def test_a_fact_in_the_tail_changes_the_row_of_a_claim(judge: CrossEncoder) -> None:
    body = "w1 " * 700
    assert judge.rerank("w3", [body]) != judge.rerank("w3", [body + "w9 w8 " * 60])


@pytest.mark.parametrize(("asked", "refused"), [(27, False), (28, True), (500, True)])
def test_a_question_that_leaves_no_room_for_a_passage_is_refused(
    single: CrossEncoder, asked: int, refused: bool
) -> None:
    question = "w1 " * asked
    if not refused:
        assert 1 == len(single.rerank(question, ["w2 " * 50]))
        return
    with pytest.raises(
        InvalidArgument, match=rf"question has {asked} tokens.* 40 .* shorten the question to 27 tokens"
    ):
        single.rerank(question, ["w2"])


# --- what a score depends on ---


def test_the_fingerprint_is_made_of_both_files_and_of_the_settings_and_not_of_the_place(
    tmp_path: Path,
) -> None:
    home = folder(tmp_path / "a", graph(3))
    prints = [
        CrossEncoder(home, **{"label": 0, **more}).fingerprint
        for more in ({}, {"label": 1}, {"first": "text"}, {"max_tokens": 30})
    ]
    Path(home, "tokenizer.json").write_text(Path(home, "tokenizer.json").read_text() + "\n")
    prints.append(CrossEncoder(home, label=0).fingerprint)
    other = graph(3)
    other.doc_string = "another"
    prints.append(CrossEncoder(folder(tmp_path / "a", other), label=0).fingerprint)
    assert 6 == len(set(prints))
    moved = CrossEncoder(str(tmp_path.joinpath("a").rename(tmp_path / "b")), label=0)
    assert (prints[-1], "onnx:b", False) == (moved.fingerprint, moved.name, moved.remote)


def test_a_model_is_made_by_name_and_orders_what_an_engine_finds(tmp_path: Path) -> None:
    made = reranker_by_name(f"onnx:{folder(tmp_path / 'm', graph(3))}", {"label": 1, "threads": 1})
    with Engine.open(tmp_path / "store", embedder=Counting(), reranker=made) as engine:
        engine.add(document(at, text=f"w1 w{at}") for at in range(6))
        found = engine.retrieve("w4", Session(role="public", purpose="public_qa"), 6)
    scores = made.rerank("w4", [one.text for one in found.passages])
    assert sorted(scores, reverse=True) == list(scores)
    assert 6 == len({*scores})
    assert json.loads(found.receipt.record)["models"]["rerank"].startswith("onnx:m ")


def test_config_names_columns_and_bounds_tokens(tmp_path: Path) -> None:
    config = {"id2label": dict(enumerate(NLI)), "max_position_embeddings": 20, "architectures": ["A"]}
    home = folder(tmp_path, graph(3), config)
    named = CrossEncoder(home, label="neutral")
    assert named.fingerprint == CrossEncoder(home, label=1).fingerprint
    (windows,) = named._windows("w1", ["w2 " * 40])
    assert 20 >= max(len(one.ids) for one in windows) > 16
    with pytest.raises(InvalidArgument, match="max_tokens is 21; want an integer, 16 to 20"):
        CrossEncoder(home, label=1, max_tokens=21)


# --- traps ---


@pytest.mark.parametrize(
    ("columns", "arguments", "why"),
    [
        (3, {}, r"label is None; .* 3 logits, want one of 0 \('contradiction'\), 1 \('neutral'\), 2 \('ent"),
        (3, {"label": "Entailment"}, "want one of 0"),
        (3, {"label": 3}, "want one of 0"),
        (3, {"label": -1}, "want one of 0"),
        (3, {"label": True}, "want one of 0"),
        (3, {"label": 1.0}, "want one of 0"),
        (1, {"label": 0}, "a single logit, which is the score; leave label out"),
        (1, {"first": "passage"}, "want question or text"),
        (1, {"max_tokens": 15}, "want an integer, 16"),
        (1, {"max_tokens": "40"}, "want an integer, 16"),
        (1, {"threads": 0}, "threads is 0"),
        (
            1,
            {"device": "cpu"},
            "does not take the argument 'device'; it takes label, first, max_tokens, threads",
        ),
    ],
)
def test_an_argument_that_does_not_fit_the_model_is_refused(
    tmp_path: Path, columns: int, arguments: dict[str, Any], why: str
) -> None:
    config = {"id2label": dict(enumerate(NLI))} if columns == 3 else None
    with pytest.raises(InvalidArgument, match=why):
        reranker_by_name(f"onnx:{folder(tmp_path, graph(columns), config)}", arguments)


def test_columns_without_names_are_named_by_number(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"gives 2 logits, want one of 0, 1$"):
        CrossEncoder(folder(tmp_path, graph(2)))
    assert (0, 1) == CrossEncoder(str(tmp_path), label=1).labels
    (tmp_path / "config.json").write_text('{"id2label": {"0": "a", "1": "a"}}')
    with pytest.raises(ModelUnavailable, match="want a name for each"):
        CrossEncoder(str(tmp_path), label=1)


def test_one_logit_is_no_distribution(single: CrossEncoder) -> None:
    with pytest.raises(InvalidArgument, match="a single logit"):
        single.probabilities("w1", ["w2"])
    assert (0,) == single.labels


def test_texts_are_checked_and_none_give_no_scores(single: CrossEncoder, judge: CrossEncoder) -> None:
    assert [] == single.rerank("w1", [])
    assert (0, 3) == judge.probabilities("w1", []).shape
    for question, texts, why in (
        (" ", ["w1"], "text 0 is empty"),
        ("w1", ["w1", ""], "text 1 is empty"),
        ("w1", "w1", "one string"),
        ("w1 \ud800", ["w1"], "lone surrogate"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            single.rerank(question, texts)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("model.onnx", None, r"model\.onnx cannot be read \(No such file"),
        ("tokenizer.json", None, r"tokenizer\.json cannot be read \(No such file"),
        ("model.onnx", b"", r"model\.onnx cannot be loaded"),
        ("model.onnx", b"\x08\x09junk", r"model\.onnx cannot be loaded"),
        ("tokenizer.json", b"{}", "is not a tokenizer"),
        ("tokenizer.json", b"\xff", "is not a tokenizer"),
        ("config.json", b"{", r"config\.json is not JSON"),
        ("config.json", b"[" * 100_000, r"config\.json is not JSON"),
        ("config.json", b"[]", "id2label must be an object"),
        ("config.json", b'{"id2label": ["a"]}', "id2label must be an object"),
        ("config.json", b'{"max_position_embeddings": "512"}', "max_position_embeddings a positive integer"),
        ("config.json", b'{"max_position_embeddings": 8}', "reads 8 tokens; want at least 16"),
        ("config.json", b'{"id2label": {"0": "a", "1": "b"}}', "gives 1 logits; want a name for each"),
        ("config.json", b'{"id2label": {"1": "a"}}', "gives 1 logits; want a name for each"),
        ("config.json", b'{"id2label": {"0": 5}}', "gives 1 logits; want a name for each"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused(
    tmp_path: Path, name: str, content: bytes | None, why: str
) -> None:
    home = folder(tmp_path / "m")
    Path(home, name).unlink(missing_ok=True)
    if content is not None:
        Path(home, name).write_bytes(content)
    with pytest.raises(ModelUnavailable, match=why):
        CrossEncoder(home)


def test_onnxruntimes_own_format_is_not_read_as_onnx(tmp_path: Path) -> None:
    """Its bytes would be taken for what they are, and are no graph in which external files are looked for."""
    home = folder(tmp_path)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "own.ort")
    onnxruntime.InferenceSession(Path(home, "model.onnx").read_bytes(), options)
    Path(home, "model.onnx").write_bytes((tmp_path / "own.ort").read_bytes())
    onnxruntime.InferenceSession(Path(home, "model.onnx").read_bytes())
    with pytest.raises(ModelUnavailable, match="cannot be loaded"):
        CrossEncoder(home)


def test_a_path_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "absent", "\0"):
        with pytest.raises(ModelUnavailable, match="cannot be read"):
            CrossEncoder(str(path))
    with pytest.raises(InvalidArgument, match="onnx:FOLDER"):
        reranker_by_name("onnx:")


def test_a_tokenizer_without_a_template_for_pairs_is_refused(tmp_path: Path) -> None:
    home = folder(tmp_path)
    bare = tokenizer()
    bare.post_processor = processors.ByteLevel()
    bare.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ModelUnavailable, match="no template for a pair"):
        CrossEncoder(home)


def _renamed(model: Any) -> None:
    """An input that no tokenizer gives."""
    model.graph.input[2].name = "position_ids"
    for node in model.graph.node:
        node.input[:] = ["position_ids" if one == "token_type_ids" else one for one in node.input]


def _without_mask(model: Any) -> None:
    model.graph.initializer.append(numpy_helper.from_array(np.ones((1, 1), np.int64), "attention_mask"))
    del model.graph.input[1]


def _of_rank_3(model: Any) -> None:
    model.graph.input[0].type.tensor_type.shape.dim.add().dim_value = 1


def _of_two_widths(model: Any) -> None:
    for at, width in ((1, 1), (2, 20)):
        model.graph.input[at].type.tensor_type.shape.dim[1].dim_value = width


def _of_floats(model: Any) -> None:
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.FLOAT


def _per_token(model: Any) -> None:
    """A token classifier: a row for each token, none for the pair."""
    model.graph.node[-1].input[0] = "kept"
    model.graph.output[0].type.tensor_type.ClearField("shape")


def _two_outputs(model: Any) -> None:
    model.graph.node[-1].output[0] = "scores"
    model.graph.output[0].name = "scores"
    model.graph.output.append(helper.make_tensor_value_info("mean", TensorProto.FLOAT, None))


def _not_finite(model: Any) -> None:
    (head,) = (one for one in model.graph.initializer if one.name == "head")
    head.CopyFrom(numpy_helper.from_array(COLUMNS[:, :1] * np.float32(np.inf), "head"))


def _few_words(model: Any) -> None:
    """The tokenizer's ids lead beyond the embeddings: files of two models."""
    (tokens,) = (one for one in model.graph.initializer if one.name == "tokens")
    tokens.CopyFrom(numpy_helper.from_array(TOKENS[:2], "tokens"))


def _strange_operator(model: Any) -> None:
    model.graph.node[-1].domain = "elsewhere"
    model.opset_import.append(helper.make_opsetid("elsewhere", 1))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_renamed, "position_ids.*want input_ids, attention_mask"),
        (_without_mask, "want input_ids, attention_mask"),
        (_of_rank_3, "want input_ids, attention_mask"),
        (_of_two_widths, "want input_ids, attention_mask"),
        (_of_floats, r"attention_mask tensor\(float\).*want input_ids, attention_mask"),
        (_per_token, r"logits is float32 of shape \(1, 5, 1\) for 1 pairs; want a row of logits"),
        (_two_outputs, "gives scores, mean; want logits, or a single output"),
        (_not_finite, "not finite"),
        (_few_words, "from the same model"),
        (_strange_operator, "cannot be loaded"),
    ],
)
def test_a_graph_that_classifies_no_pairs_is_refused_when_it_is_opened(
    tmp_path: Path, spoil: Any, why: str
) -> None:
    model = graph()
    spoil(model)
    with pytest.raises(ModelUnavailable, match=why):
        CrossEncoder(folder(tmp_path, model))


def test_a_graph_that_reads_fewer_tokens_than_it_is_given_fails_and_says_nothing_of_the_text(
    tmp_path: Path,
) -> None:
    model = graph()
    (places,) = (one for one in model.graph.initializer if one.name == "places")
    places.CopyFrom(numpy_helper.from_array(PLACES[:30], "places"))
    short = CrossEncoder(folder(tmp_path, model))
    assert 1 == len(short.rerank("w1", ["w2"]))
    with pytest.raises(ModelUnavailable, match=r"that it reads 512 tokens \(max_tokens\)") as raised:
        short.rerank("w1", ["w2 w7 " * 40])
    assert "w7" not in str(raised.value)
    assert 1 == len(CrossEncoder(str(tmp_path), max_tokens=30).rerank("w1", ["w2 w7 " * 40]))


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("nested", [True, False])
def test_a_graph_whose_weights_stand_in_other_files_is_refused(
    tmp_path: Path, inside: bool, nested: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the file is, and also in a constant's attribute: the hash would not cover what it holds."""
    model = graph()
    secret = tmp_path / ("m/head.bin" if inside else "head.bin")
    (head,) = (one for one in model.graph.initializer if one.name == "head")
    raw = head.raw_data
    onnx.external_data_helper.set_external_data(head, "head.bin" if inside else str(secret))
    head.ClearField("raw_data")
    if nested:
        model.graph.node.insert(0, helper.make_node("Constant", [], ["head"], value=head))
        model.graph.initializer.remove(head)
    home = folder(tmp_path / "m", model)
    secret.write_bytes(raw)
    monkeypatch.chdir(secret.parent)
    with pytest.raises(ModelUnavailable, match="keeps its weights in other files"):
        CrossEncoder(home)


@pytest.mark.parametrize(
    "entry", [b"\x0a\x08location", b"\x0a\x88\x00location", b"\x8a\x80\x00\x88\x80\x00location"]
)
def test_no_spelling_of_the_key_hides_an_external_file(entry: bytes) -> None:
    """Protocol Buffers take a number with any padding; the parser shows that each entry is the same key."""
    parsed = onnx.StringStringEntryProto.FromString(entry)
    assert "location" == parsed.key
    assert _EXTERNAL.search(b"before" + entry + b"after")
    assert not _EXTERNAL.search(b"\x0a\x09location_" + b"/model/location/Gather")


# --- a real model ---


@pytest.mark.skipif(
    "CARAG_NLI_FOLDER" not in os.environ, reason="CARAG_NLI_FOLDER names no folder with an NLI model"
)
def test_a_real_model_tells_what_contradicts_from_what_is_unrelated() -> None:
    """``CARAG_NLI_LABEL`` is the column of contradiction, by name or number; 1 where it is not said."""
    said = os.environ.get("CARAG_NLI_LABEL", "1")
    model = CrossEncoder(
        os.environ["CARAG_NLI_FOLDER"], label=int(said) if said.isdecimal() else said, first="text"
    )
    contrary, unrelated = model.rerank(
        "The fee is 34 %.", ["The fee is 43 %.", "Snow fell on the mountains."]
    )
    assert contrary > 0.9 > 0.5 > unrelated
