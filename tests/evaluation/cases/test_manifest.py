"""A corpus is rebuilt from its manifest to the byte, and whatever differs from the manifest is refused by name."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.errors import CorruptFile, InvalidArgument
from carag.evaluation.cases import corpus as corpora
from carag.evaluation.cases.corpus import BuiltCorpus, CorpusRule, build_corpus
from carag.evaluation.cases.ground_truth import GroundTruth
from carag.evaluation.cases.manifest import (
    Manifest,
    ManifestEntry,
    check_same,
    manifest_bytes,
    read_manifest,
    with_chunks,
)
from carag.evaluation.cases.pairs import Pair, cross
from carag.evaluation.cases.synthetic import built_pairs
from carag.evaluation.models import TimedEmbedder
from carag.evaluation.run import NOW
from carag.retrieval import embedder_by_name
from tests.scripts.edgar import AGENT, fetch_edgar, serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.evaluation.conftest import Small

SEEDS = (0, 1)


def made(built: BuiltCorpus, truth: GroundTruth, embedder: TimedEmbedder) -> tuple[bytes, bytes, list[Pair]]:
    """Return what others must get too: the manifest, ``words.json``, and pairs by seed."""
    for question in built.questions:
        embedder.embed_query(question.text)
    pairs = [
        pair
        for seed in SEEDS
        for pair in (
            *cross(truth, built.questions, built.gold, embedder.vectors, count=30, seed=seed),
            *built_pairs(truth, embedder, count=5, seed=seed),
        )
    ]
    words = json.dumps(truth.words(), sort_keys=True).encode()
    return manifest_bytes(with_chunks(built.filings, truth.row_at)), words, pairs


def rebuilt(size: str, cache: Path, data: Path, manifest: Path | None) -> tuple[bytes, bytes, list[Pair]]:
    embedder = TimedEmbedder(embedder_by_name("wordllama"))
    built = build_corpus(size, cache=cache, embedder=embedder, data=data, manifest=manifest)
    truth = GroundTruth.open(built.store, now=NOW)
    with truth.store:
        return made(built, truth, embedder)


@pytest.fixture(scope="module")
def first(small: Small) -> tuple[bytes, bytes, list[Pair]]:
    return made(small.built, small.truth, small.embedder)


@pytest.fixture
def fetched(first: tuple[bytes, bytes, list[Pair]], small_corpus: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The manifest of the small corpus, and a directory with what was fetched by it."""
    manifest, data = tmp_path / "manifest.jsonl", tmp_path / "data"
    manifest.write_bytes(first[0])
    with serving() as sec:
        for line in map(json.loads, first[0].splitlines()):
            body = (small_corpus / f"{line['accession_number']}.txt").read_bytes()
            sec.submissions[f"/Archives/{line['path']}"] = body
        client = fetch_edgar.Client(AGENT, host=sec.url, sleep=lambda _: None)
        paths = [path for path in fetch_edgar.read_manifest(manifest).values() if path]
        done = fetch_edgar.fetch_submissions(client, data / "edgar", paths)
    assert dict(done) == {"fetched": len(first[0].splitlines())}
    return manifest, data


def test_the_small_corpus_is_fetched_and_rebuilt_to_the_byte(
    first: tuple[bytes, bytes, list[Pair]], fetched: tuple[Path, Path], tmp_path: Path
) -> None:
    """Labels and pairs are those of the first run, whatever else is in the directory."""
    manifest, data = fetched
    other = next((data / "edgar" / "filings").iterdir()).read_text().replace("99", "77")
    (data / "edgar" / "another.txt").write_text(other)
    packed = tmp_path / "manifest.jsonl.gz"
    packed.write_bytes(gzip.compress(manifest.read_bytes()))
    assert rebuilt("small", tmp_path, data, packed) == first


def test_what_differs_is_refused_by_name(fetched: tuple[Path, Path], tmp_path: Path) -> None:
    """One byte of one text, one fact of one header, and one file: each is named, and nothing is built."""
    manifest, data = fetched
    altered, stated, gone = sorted((data / "edgar" / "filings").iterdir())[:3]
    text = altered.read_text()
    assert text.count("Illustrative text") >= 1
    altered.write_text(text.replace("Illustrative text", "Illustrative Text", 1))
    header = stated.read_text()
    assert "STATE OF INCORPORATION:" in header
    stated.write_text(header.replace("<ACCEPTANCE-DATETIME>20", "<ACCEPTANCE-DATETIME>19", 1))
    gone.unlink()
    with pytest.raises(InvalidArgument) as refused:
        rebuilt("small", tmp_path, data, manifest)
    for name, what in ((altered.stem, "text"), (stated.stem, "facts"), (gone.stem, "missing")):
        assert f"{name} ({what})" in str(refused.value)
    assert ", 3 are missing or differ" in str(refused.value)
    assert not list(tmp_path.glob("*/store"))


def test_filings_without_a_folder_are_asked_for(fetched: tuple[Path, Path], tmp_path: Path) -> None:
    for data in (None, tmp_path / "nowhere"):
        with pytest.raises(InvalidArgument, match=r"fetch_edgar\.py --manifest"):
            build_corpus(
                "small",
                cache=tmp_path,
                embedder=embedder_by_name("wordllama"),
                data=data,
                manifest=fetched[0],
            )


def test_a_manifest_of_real_filings_rebuilds_their_corpus(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of each filing is chosen by a rule; the manifest names the parts, and the filings that change labels."""
    monkeypatch.setitem(corpora.SIZES, "part", CorpusRule(700, 800))  # fewer chunks of the same filings
    before = rebuilt("part", tmp_path / "a", shared_data, None)
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_bytes(before[0])
    assert any(line["chunks"] == 0 for line in map(json.loads, before[0].splitlines()))
    assert rebuilt("part", tmp_path / "b", shared_data, manifest) == before


# --- the file ---

ENTRIES = st.builds(
    ManifestEntry,
    accession_number=st.from_regex(r"\d{10}-\d{2}-\d{6}|[a-z:]{1,9}", fullmatch=True),
    cik=st.none() | st.integers(0, 10**10 - 1),
    form=st.none() | st.text(max_size=6),
    filed=st.none() | st.dates().map(str),
    text_sha256=st.sampled_from(["0" * 64, "1" * 64]),
    facts_sha256=st.sampled_from(["0" * 64, "1" * 64]),
    places=st.dictionaries(
        st.text(max_size=5), st.lists(st.integers(0, 9), min_size=1, max_size=3), max_size=2
    ),
)
MANIFESTS = st.lists(ENTRIES, min_size=1, max_size=4).map(
    lambda found: {one.accession_number: one for one in found}
)


@given(MANIFESTS, st.data())
def test_what_is_written_is_read_and_a_changed_line_is_refused(
    tmp_path_factory: pytest.TempPathFactory, manifest: Manifest, draw: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "manifest.jsonl"
    path.write_bytes(manifest_bytes(manifest))
    assert read_manifest(path) == manifest
    check_same(manifest, manifest)
    lines = path.read_bytes().splitlines()
    at = draw.draw(st.integers(0, len(lines) - 1))
    row: dict[str, Any] = json.loads(lines[at])
    changed = {
        "chunks": {"chunks": row["chunks"] + 1},
        "path": {"path": "edgar/data/1/0.txt"},
        "cik": {"cik": "1"},
        "extra": {"more": 1},
        "places": {"places": 3},
        "offset": {"places": {"10-K": ["0"]}, "chunks": 1},
        "form": {"form": 4},
    }
    name = draw.draw(st.sampled_from([*changed, "blank", "twice"]))
    if name in changed:
        lines[at] = json.dumps({**row, **changed[name]}, sort_keys=True, separators=(",", ":")).encode()
    else:
        lines.insert(at, b"" if name == "blank" else lines[at])
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(CorruptFile, match="copy the file again"):
        read_manifest(path)


@given(MANIFESTS, MANIFESTS)
def test_the_names_refused_are_those_that_differ(wanted: Manifest, found: Manifest) -> None:
    """Filings that the manifest does not name change nothing."""

    def key(one: ManifestEntry | None) -> object:
        return one and (one.text_sha256, one.facts_sha256, one.chunker)

    odd = sorted(name for name in wanted if key(wanted[name]) != key(found.get(name)))
    if not odd:
        check_same(wanted, found)
        return
    with pytest.raises(InvalidArgument) as refused:
        check_same(wanted, found)
    assert f"{len(odd)} are missing or differ" in str(refused.value)
    assert all(f"{name} (" in str(refused.value) for name in odd)
