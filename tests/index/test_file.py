"""Saving, loading and mapping: round trips, golden files, and everything that must be refused."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import CorruptFile, InvalidArgument
from carag.index import Index
from carag.policy import NEVER, Mask, Policy, policy_word
from carag.policy.mask import ANY_AUDIENCE

GOLDEN = Path(__file__).parent / "golden"
DTYPES = ["float32", "float16", "int8"]
ANY = Policy(Mask(), audiences=ANY_AUDIENCE)
PLANS = ["auto", "exact", "graph", "scan", "certified"]
# Rows without a label are among those drawn.
pytestmark = pytest.mark.filterwarnings("ignore::carag.errors.UnlabelledWarning")


def golden_index(dtype: str, *, has_audiences: bool = True) -> Index:
    """The recipe of the golden files, in integers; tests/csrc/test_file.c follows it too."""
    i, j = np.ogrid[:24, :5]
    words = policy_word(np.arange(24) % 8)
    words[7] = 3  # unlabelled
    row = np.arange(24)
    public_at = row // 4 * 100
    public_at[9] = NEVER
    index = Index(5, M=2, ef_construction=10, seed=42, dtype=dtype)
    index.add(
        (i * 7 + j * 13 + i * i * j) % 11 - 4,
        words,
        row * 10,
        public_at=public_at,
        expires_at=np.where(row % 6 == 5, 10_000, NEVER),
        entities=row % 3,
        audiences=np.where(row % 4 == 2, row * row, 0) if has_audiences else None,
    )
    index.delete([50])
    return index


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 300])
def test_round_trip(build, tmp_path, n, dtype, mmap):
    """A loaded index has the rows, answers and bytes of the saved one, and changes in the same way."""
    index = build(n, 7, dtype=dtype)
    index.save(tmp_path / "a.carag")
    loaded = Index.load(str(tmp_path / "a.carag"), mmap=mmap)
    loaded.verify()
    assert () == loaded.check()
    assert dtype == loaded.dtype
    assert index.keys().tolist() == loaded.keys().tolist()
    query = np.ones(7)
    for plan in PLANS[1:]:
        a, b = (each.search(query, 9, Mask(required=1), plan=plan) for each in (index, loaded))
        assert a.keys.tobytes() == b.keys.tobytes()
        assert a.similarities.tobytes() == b.similarities.tobytes()
    for each in (index, loaded):
        each.add(np.eye(7), [policy_word(1)] * 7)
        each.save(tmp_path / f"{each is index}.carag")
    assert (tmp_path / "True.carag").read_bytes() == (tmp_path / "False.carag").read_bytes()


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("golden", sorted(GOLDEN.glob("v*.carag")), ids=lambda path: path.stem)
def test_committed_files_stay_readable(golden, mmap):
    """Every golden file loads and answers."""
    index = Index.load(golden, mmap=mmap)
    index.verify()
    assert () == index.check()
    assert (5, 23) == (index.dim, len(index))
    everything = Policy(Mask(), audiences=[row * row for row in range(2, 24, 4)])
    assert (21, 21) == (index.count(everything, as_of=2_500), index.count(ANY, as_of=2_500))
    assert (15 if golden.stem.startswith("v3") else 21) == index.count(Mask(), as_of=2_500)
    assert 50 not in index
    for plan in PLANS:
        found = index.search(np.ones(5), 30, everything, as_of=2_500, plan=plan)
        assert 21 == np.count_nonzero(found.keys >= 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_golden_files_are_made_again(tmp_path, dtype):
    """The golden files as committed are what the same recipe makes here, byte for byte."""
    golden_index(dtype).save(tmp_path / "again")
    assert (GOLDEN / f"v3_{dtype}.carag").read_bytes() == (tmp_path / "again").read_bytes()


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_file_of_the_version_before_is_for_everybody(tmp_path, dtype, mmap):
    """It answers as the same rows without audiences do, and is saved as they are."""
    old, new = (
        Index.load(GOLDEN / f"v2_{dtype}.carag", mmap=mmap),
        golden_index(dtype, has_audiences=False),
    )
    assert not old.audiences(old.keys()).any()
    for plan in PLANS:
        one, other = (index.search(np.eye(5), 30, Mask(), as_of=2_500, plan=plan) for index in (old, new))
        assert one.keys.tobytes() == other.keys.tobytes()
        assert one.similarities.tobytes() == other.similarities.tobytes()
    old.save(tmp_path / "old")
    new.save(tmp_path / "new")
    assert (tmp_path / "old").read_bytes() == (tmp_path / "new").read_bytes()


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("version", [1, 4])
def test_other_versions_are_refused(tmp_path, mmap, version):
    """A file of another version is refused by that name; the store rebuilds the index."""
    before = bytearray((GOLDEN / "v2_float32.carag").read_bytes())
    before[8] = version
    (tmp_path / "index").write_bytes(before)
    with pytest.raises(CorruptFile, match="the format version is not one that this library reads"):
        Index.load(tmp_path / "index", mmap=mmap)


@given(st.data())
def test_an_altered_file_is_refused(tmp_path_factory, data):
    """A changed, missing or extra byte is a CorruptFile that names section or reason, at the latest in verify()."""
    golden = data.draw(st.sampled_from(sorted(GOLDEN.glob("v*.carag"))))
    original = golden.read_bytes()
    at = data.draw(st.integers(0, len(original) - 1))
    flipped = original[:at] + bytes([original[at] ^ data.draw(st.integers(1, 255))]) + original[at + 1 :]
    altered = data.draw(st.sampled_from([flipped, original[:at], original + b"\0", b"", b"CARAGIDX"]))
    path = tmp_path_factory.mktemp("altered") / "index.carag"
    path.write_bytes(altered)
    with pytest.raises(CorruptFile, match=r"in section|not a regular file"):
        Index.load(path)
    with pytest.raises(CorruptFile, match=r"in section|not a regular file"):
        Index.load(path, mmap=True).verify()


@pytest.mark.parametrize(
    "section", ["header", "words", "classes", "terms", "keys", "vectors", "links", "codes", "centre"]
)
def test_the_message_names_the_section(tmp_path, section):
    """The section of the damage is named."""
    damaged = bytearray((GOLDEN / "v3_float32.carag").read_bytes())
    entry = damaged.find(section.encode().ljust(8, b"\0"))
    at = 40 if section == "header" else int.from_bytes(damaged[entry + 8 : entry + 16], "little")
    damaged[at] ^= 0x10
    (tmp_path / "x").write_bytes(damaged)
    with pytest.raises(CorruptFile, match=f"section '{section}'"):
        Index.load(tmp_path / "x")


def test_a_mapped_index_outlives_its_file(build, tmp_path):
    """Saving over a mapped file, or removing it, changes nothing for an index that has it open."""
    index = build(300, 7)
    index.save(tmp_path / "a")
    mapped = Index.load(tmp_path / "a", mmap=True)
    before = mapped.search(np.ones(7), 9, Mask()).keys.tolist()
    build(20, 7).save(tmp_path / "a")
    assert before == mapped.search(np.ones(7), 9, Mask()).keys.tolist()
    mapped.save(tmp_path / "a")
    (tmp_path / "a").unlink()
    assert before == mapped.search(np.ones(7), 9, Mask()).keys.tolist()
    mapped.verify()


def test_nothing_is_built_on_a_damaged_mapping(build, tmp_path):
    """A mapped index of damaged vectors answers, refuses to grow, and a copy of it is refused as damaged."""
    build(300, 7).save(tmp_path / "a")
    damaged = bytearray((tmp_path / "a").read_bytes())
    entry = damaged.find(b"vectors\0")
    damaged[int.from_bytes(damaged[entry + 8 : entry + 16], "little") + 100] ^= 1
    (tmp_path / "a").write_bytes(damaged)
    mapped = Index.load(tmp_path / "a", mmap=True)
    assert 9 == np.count_nonzero(mapped.search(np.ones(7), 9, Mask()).keys >= 0)
    with pytest.raises(CorruptFile, match="vectors"):
        mapped.add(np.eye(7), [policy_word(1)] * 7)
    with pytest.raises(CorruptFile, match="vectors"):
        mapped.consolidate()
    assert 300 == len(mapped)
    mapped.save(tmp_path / "b")
    with pytest.raises(CorruptFile, match="vectors"):
        Index.load(tmp_path / "b")


def test_files_that_cannot_be_read_or_written(build, tmp_path):
    """The system's errors arrive as OSError, and a failed save leaves the old file and nothing else."""
    index = build(10)
    for mmap in (False, True):
        with pytest.raises(FileNotFoundError):
            Index.load(tmp_path / "nothing", mmap=mmap)
        with pytest.raises(CorruptFile):
            Index.load(tmp_path, mmap=mmap)
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
    """An interrupted write is reported, the old file stays, and the temporary one is removed."""
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
    """Only the owner can read the file, which may hold confidential rows."""
    build(3).save(tmp_path / "a")
    assert 0o600 == stat.S_IMODE((tmp_path / "a").stat().st_mode)
