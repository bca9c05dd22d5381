"""Saving, loading and mapping words: a golden file, and everything that must be refused."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import CorruptFile
from carag.index import Index, TextIndex
from carag.policy import Mask, Policy, policy_word

FOLDER = Path(__file__).parent / "golden"
GOLDEN = FOLDER / "words_v2.carag"
SHARED = Policy(Mask(), audiences=[1, 2])


def golden_index(*, has_audiences=True):
    """The recipe of the golden file."""
    words = ["net", "sales", "10-k", "é", "x" * 200]
    index = TextIndex()
    for batch in range(3):
        keys = np.arange(8) * 5 + batch
        tokens = [
            [words[(i * j + batch) % 5] for j in range(i + 1)] + ["rare"] * (150 * (i == 3)) for i in range(8)
        ]
        index.add(keys, [9, 9, 9, 4, 4, 7, 7, 9], tokens, headings={9: ["acme", "net"], 4: ["acme"] * 130})
        index.label(
            100 + keys, keys, policy_word(np.arange(8) % 3), public_at=batch * 10, expires_at=90, entities=2
        )
        audiences = keys % 3 if has_audiences else None
        index.label(300 - keys, keys, policy_word(np.full(8, 5)), public_at=90, audiences=audiences)
    index.delete([6, 21])
    return index


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("golden", sorted(FOLDER.glob("words_v*.carag")), ids=lambda path: path.stem)
def test_committed_files_stay_readable(golden, mmap):
    """They load, pass verify() and answer."""
    index = TextIndex.load(golden, mmap=mmap)
    index.verify()
    assert (22, 44) == (len(index), index.label_count)
    assert (22, 1_223, (16, 16)) == index.count(["acme", "sales"], SHARED, as_of=95)
    assert (22 if golden.stem == "words_v1" else 6) == index.count([], Mask(), as_of=95).chunks
    found = index.search(["sales", "rare"], 4, SHARED, as_of=95)
    assert [300 - chunk for chunk in found.chunks.tolist()] == found.keys.tolist()


def test_the_golden_file_is_made_again(tmp_path):
    """The recipe gives the committed bytes."""
    golden_index().save(tmp_path / "again")
    assert GOLDEN.read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_a_file_of_the_version_before_is_for_everybody(tmp_path, mmap):
    """It is saved as the same labels without audiences are."""
    TextIndex.load(FOLDER / "words_v1.carag", mmap=mmap).save(tmp_path / "old")
    golden_index(has_audiences=False).save(tmp_path / "new")
    assert (tmp_path / "old").read_bytes() == (tmp_path / "new").read_bytes()


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_a_loaded_index_goes_on_like_the_one_that_was_saved(tmp_path, mmap):
    """The same changes give the same bytes, also when the mapped file is replaced."""
    index = golden_index()
    index.save(tmp_path / "a")
    loaded = TextIndex.load(tmp_path / "a", mmap=mmap)
    for one, name in ((index, "b"), (loaded, "a")):
        one.add([900, 901], [1, 1], [["sales"], ["zeta"]])
        one.label([900], [900], [policy_word(1)])
        one.delete([900])
        one.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@given(st.data())
def test_an_altered_file_is_refused(tmp_path_factory, data):
    """A changed, missing or extra byte is a CorruptFile that names the section, read or mapped."""
    original = data.draw(st.sampled_from(sorted(FOLDER.glob("words_v*.carag")))).read_bytes()
    at = data.draw(st.integers(0, len(original) - 1))
    flipped = original[:at] + bytes([original[at] ^ data.draw(st.integers(1, 255))]) + original[at + 1 :]
    altered = data.draw(st.sampled_from([flipped, original[:at], original + b"\0", b"", b"CARAGTXT"]))
    path = tmp_path_factory.mktemp("altered") / "words.carag"
    path.write_bytes(altered)
    for mmap in (False, True):
        with pytest.raises(CorruptFile, match="in section"):
            TextIndex.load(path, mmap=mmap)


def test_nothing_is_built_on_a_mapped_file_that_is_damaged(tmp_path):
    """If it is damaged after it was opened, no file is written from it."""
    golden_index().save(tmp_path / "a")
    whole = (tmp_path / "a").read_bytes()
    mapped = TextIndex.load(tmp_path / "a", mmap=True)
    entry = whole.find(b"postings")
    at = int.from_bytes(whole[entry + 8 : entry + 16], "little")
    with (tmp_path / "a").open("r+b") as file:
        file.seek(at)
        file.write(bytes([whole[at] ^ 0xFF]))
    for call in (mapped.verify, mapped.compact, lambda: mapped.save(tmp_path / "b")):
        with pytest.raises(CorruptFile, match="postings"):
            call()
    assert not (tmp_path / "b").exists()


def test_the_files_of_vectors_and_of_words_are_not_mistaken_for_each_other(tmp_path):
    """The error says what the file is not."""
    Index(3).save(tmp_path / "vectors")
    with pytest.raises(CorruptFile, match="not a CARAG index of texts"):
        TextIndex.load(tmp_path / "vectors")
    with pytest.raises(CorruptFile, match="not a CARAG index"):
        Index.load(GOLDEN)


def test_files_that_cannot_be_read_or_written(tmp_path):
    """The system's errors arrive as OSError, and a failed save leaves the old file and nothing else."""
    index = golden_index()
    with pytest.raises(FileNotFoundError):
        TextIndex.load(tmp_path / "nothing")
    with pytest.raises(CorruptFile, match="not a regular file"):
        TextIndex.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        index.save(tmp_path / "no" / "where")
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="rename"):
        index.save(tmp_path / "a")
    assert [tmp_path / "a"] == list(tmp_path.iterdir())
    index.save(tmp_path / "b")
    assert 0o600 == stat.S_IMODE((tmp_path / "b").stat().st_mode)
