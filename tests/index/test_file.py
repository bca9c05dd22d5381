"""Saving and loading: round trips, golden files, and everything that must be refused."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import CorruptFile, InvalidArgument
from carag.index import Index
from carag.policy import NEVER, Mask, policy_word

GOLDEN = Path(__file__).parent / "golden"


def golden_index() -> Index:
    """The recipe of the golden file, in integers; tests/csrc/test_file.c follows it too."""
    i, j = np.ogrid[:24, :5]
    words = policy_word(np.arange(24) % 8)
    words[7] = 3  # unlabelled
    public_at = np.arange(24) * 100
    public_at[9] = NEVER
    index = Index(5, M=2, ef_construction=10, seed=42)
    index.add((i * 7 + j * 13 + i * i * j) % 11 - 4, words, np.arange(24) * 10, public_at=public_at)
    index.delete([50])
    return index


@pytest.mark.parametrize("n", [0, 1, 2, 300])
def test_round_trip(build, tmp_path, n):
    """A loaded index has the rows, the answers and the bytes of the one saved, and goes on like it."""
    index = build(n, 7)
    index.save(tmp_path / "a.carag")
    loaded = Index.load(str(tmp_path / "a.carag"))
    assert () == loaded.check()
    assert index.keys().tolist() == loaded.keys().tolist()
    query = np.ones(7)
    for plan in ("exact", "graph"):
        a, b = (each.search(query, 9, Mask(required=1), plan=plan) for each in (index, loaded))
        assert a.keys.tobytes() == b.keys.tobytes()
        assert a.similarities.tobytes() == b.similarities.tobytes()
    for each in (index, loaded):
        each.add(np.eye(7), [policy_word(1)] * 7)
        each.save(tmp_path / f"{each is index}.carag")
    assert (tmp_path / "True.carag").read_bytes() == (tmp_path / "False.carag").read_bytes()


def test_same_rows_same_seed_same_bytes(build, tmp_path):
    """The file depends on rows, order, parameters and seed; another seed gives another graph."""
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        index = Index(6, M=4, ef_construction=20, seed=seed)
        index.add(np.random.default_rng(0).standard_normal((200, 6)), np.full(200, policy_word(0)))
        index.save(tmp_path / name)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b
    assert a != c


@pytest.mark.parametrize("golden", sorted(GOLDEN.glob("v*.carag")), ids=lambda path: path.name)
def test_old_files_stay_readable(golden):
    """Every golden file of every format version loads and answers."""
    index = Index.load(golden)
    assert () == index.check()
    assert (5, 23) == (index.dim, len(index))
    assert 21 == index.count(Mask(), as_of=NEVER - 1)
    assert 50 not in index


def test_the_golden_file_is_made_again(tmp_path):
    """Version 1 as committed is what the same recipe makes here, byte for byte."""
    golden_index().save(tmp_path / "again")
    assert (GOLDEN / "v1_small.carag").read_bytes() == (tmp_path / "again").read_bytes()


@given(st.data())
def test_an_altered_file_is_refused(tmp_path_factory, data):
    """Any byte changed, any cut, any byte too many: CorruptFile, with the section or the reason in the message."""
    original = (GOLDEN / "v1_small.carag").read_bytes()
    at = data.draw(st.integers(0, len(original) - 1))
    flipped = original[:at] + bytes([original[at] ^ data.draw(st.integers(1, 255))]) + original[at + 1 :]
    altered = data.draw(st.sampled_from([flipped, original[:at], original + b"\0", b"", b"CARAGIDX"]))
    path = tmp_path_factory.mktemp("altered") / "index.carag"
    path.write_bytes(altered)
    with pytest.raises(CorruptFile, match=r"in section|not a regular file"):
        Index.load(path)


@pytest.mark.parametrize(
    ("at", "section"),
    [(0, "header"), (8, "header"), (24, "header"), (400, "vectors"), (2000, "words"), (2600, "links")],
)
def test_the_message_names_the_section(tmp_path, at, section):
    """The section of the damage is named."""
    damaged = bytearray((GOLDEN / "v1_small.carag").read_bytes())
    damaged[at] ^= 0x10
    (tmp_path / "x").write_bytes(damaged)
    with pytest.raises(CorruptFile, match=f"section '{section}'"):
        Index.load(tmp_path / "x")


def test_files_that_cannot_be_read_or_written(build, tmp_path):
    """The system's refusals arrive as OSError, and a failed save leaves the old file and no litter."""
    index = build(10)
    with pytest.raises(FileNotFoundError):
        Index.load(tmp_path / "nothing")
    with pytest.raises(CorruptFile):
        Index.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        index.save(tmp_path / "no" / "where")
    with pytest.raises(InvalidArgument):
        index.save("a\0b")
    index.save(tmp_path / "a")
    before = (tmp_path / "a").read_bytes()
    index.add(np.eye(8), [policy_word(1)] * 8)
    (tmp_path / "a").unlink()
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="rename"):
        index.save(tmp_path / "a")
    assert [tmp_path / "a"] == list(tmp_path.iterdir())
    assert len(before) > 0


def test_a_full_disk_keeps_the_old_file(build, tmp_path):
    """A write the system cuts short is reported, the old file stays, and the temporary one goes."""
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    index = build(20)
    index.save(tmp_path / "a")
    before = (tmp_path / "a").read_bytes()
    index.add(np.eye(8), [policy_word(1)] * 8)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
        with pytest.raises(OSError, match="cannot write"):
            index.save(tmp_path / "a")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert before == (tmp_path / "a").read_bytes()
    assert [tmp_path / "a"] == list(tmp_path.iterdir())


def test_saved_files_are_for_their_owner(build, tmp_path):
    """An index may hold what others may not see: the file opens for its owner only."""
    build(3).save(tmp_path / "a")
    assert 0o600 == stat.S_IMODE((tmp_path / "a").stat().st_mode)
