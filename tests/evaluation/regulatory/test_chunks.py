"""Windows of a document: where the paper puts them, where the package does, and where their text stands."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import InvalidArgument
from carag.evaluation.regulatory.chunks import ChunkerConfig, package_chunks, paper_chunks

configs = st.integers(1, 12).flatmap(
    lambda size: st.builds(ChunkerConfig, st.just(size), st.integers(0, size - 1))
)
texts = st.text("ab.ü規🙂 \t\n\u00a0\u2003\r", max_size=60) | st.lists(
    st.sampled_from(["a", "bü", "c ", "\n", "\n\n\n", "\n\n\n\n\n", " \n\n\n "]), max_size=30
).map("".join)


def normalised(text: str) -> str:
    """Every run of white space as one space."""
    return re.sub(r"\s+", " ", text)


def fewer_blank_lines(text: str) -> str:
    """Three line ends and more as two."""
    return re.sub(r"\n{3,}", "\n\n", text)


# --- the paper ---


def test_window_k_spans_k_times_size_minus_overlap_and_size_characters_on() -> None:
    text = "abcdefghijklmnop"  # L = 16, c = 7, o = 2: windows begin at 0, 5, 10
    found = paper_chunks(text, "d", ChunkerConfig(7, 2))
    assert [(one.chunk_index, one.text, one.start, one.end) for one in found] == [
        (0, "abcdefg", 0, 7),
        (1, "fghijkl", 5, 12),
        (2, "klmnop", 10, 16),
    ]


def test_offsets_are_those_of_the_text_as_it_was() -> None:
    text = "\n\n The  law\t\tis\n\n\nlong. "
    #       normalised: "The law is long.", windows of 8 that share 3 begin at 0, 5, 10
    found = paper_chunks(text, "d", ChunkerConfig(8, 3))
    assert [one.text for one in found] == ["The law ", "aw is lo", " long."]
    assert [(one.start, one.end) for one in found] == [(3, 12), (9, 20), (15, 23)]
    assert [text[one.start : one.end] for one in found] == ["The  law\t", "aw\t\tis\n\n\nlo", "\n\n\nlong."]


@pytest.mark.parametrize(
    ("length", "windows"), [(1, 1), (10, 1), (11, 2), (18, 2), (19, 3), (26, 3), (27, 4)]
)
def test_the_last_window_is_the_first_that_reaches_the_end(length: int, windows: int) -> None:
    found = paper_chunks("x" * length, "d", ChunkerConfig(10, 2))
    assert len(found) == windows
    assert found[-1].end == length


@pytest.mark.parametrize("text", ["", " ", "\n\t \u00a0"])
def test_no_text_is_no_window(text: str) -> None:
    assert paper_chunks(text, "d", ChunkerConfig(4, 1)) == []
    assert package_chunks(text, "d", ChunkerConfig(4, 1)) == []


def test_a_stretch_is_numbered_on_and_placed_in_its_document() -> None:
    (one,) = paper_chunks("two  words", "d", ChunkerConfig(99, 0), first=7, offset=1_000)
    assert (one.chunk_index, one.start, one.end) == (7, 1_000, 1_010)


@given(texts, configs, st.integers(0, 50), st.integers(0, 9))
def test_windows_hold_the_whole_text_and_say_where_it_stands(
    text: str, config: ChunkerConfig, offset: int, first: int
) -> None:
    found = paper_chunks(text, "d", config, first, offset)
    whole = normalised(text).strip()
    step = config.chunk_size - config.chunk_overlap
    for k, one in enumerate(found):
        assert one.chunk_index == first + k
        assert one.text == whole[k * step : k * step + config.chunk_size]
        assert one.text == normalised(text[one.start - offset : one.end - offset])
    if whole:
        assert found[0].text + "".join(one.text[config.chunk_overlap :] for one in found[1:]) == whole
    for one, following in pairwise(found):
        assert len(one.text) == config.chunk_size
        assert one.text[step:] == following.text[: config.chunk_overlap]
        assert len(following.text) > config.chunk_overlap  # it holds something new


# --- the package ---


def test_the_package_shrinks_only_blank_lines() -> None:
    text = "a  b\n\n\n\n\nc\td"
    (one,) = package_chunks(text, "d", ChunkerConfig(99, 0))
    assert (one.text, one.start, one.end) == ("a  b\n\nc\td", 0, len(text))


def test_the_packages_last_window_may_be_nothing_but_overlap() -> None:
    found = package_chunks("abcdefgh", "d", ChunkerConfig(5, 2))  # begins at 0, 3 and 6
    assert [one.text for one in found] == ["abcde", "defgh", "gh"]
    assert [one.text for one in paper_chunks("abcdefgh", "d", ChunkerConfig(5, 2))] == ["abcde", "defgh"]


def test_the_package_strips_windows_and_counts_those_it_leaves_out() -> None:
    found = package_chunks("ab      cd", "d", ChunkerConfig(3, 0))  # "ab ", "   ", "  c", "d"
    assert [(one.text, one.chunk_index, one.start, one.end) for one in found] == [
        ("ab", 0, 0, 2),
        ("c", 2, 8, 9),
        ("d", 3, 9, 10),
    ]


@given(texts, configs, st.integers(0, 50))
def test_windows_of_the_package_say_where_they_stand_too(
    text: str, config: ChunkerConfig, offset: int
) -> None:
    for one in package_chunks(text, "d", config, offset=offset):
        assert fewer_blank_lines(text[one.start - offset : one.end - offset]) == one.text
        assert one.text == one.text.strip() != ""


# --- settings ---


@pytest.mark.parametrize(
    ("size", "overlap"), [(10, 10), (10, 11), (10, -1), (0, 0), (-5, -9), (10.0, 1), (True, 0), ("10", 0)]
)
def test_windows_that_would_not_advance_are_refused(size: object, overlap: object) -> None:
    with pytest.raises(InvalidArgument, match="want"):
        ChunkerConfig(size, overlap)  # type: ignore[arg-type]
