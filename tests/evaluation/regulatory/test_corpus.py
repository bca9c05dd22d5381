"""A folder as a corpus: every file is read or named, and a file's own classification labels it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag.errors import InvalidArgument
from carag.evaluation.regulatory import LocalCorpusConnector, Regulatory
from carag.policy import VERSION_WORD
from tests.evaluation.regulatory.fakes import Everywhere, Said, turn

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "---\nclassification: secret\n---\nThe merger closes in May.\n"  # noqa: S105 - a document


def test_every_file_is_a_document_named_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "eu").mkdir()
    (tmp_path / "eu" / "act.md").write_text("Keep the logs.\n")
    (tmp_path / "rule.txt").write_text("Sell no logs.\n")
    found = LocalCorpusConnector(tmp_path).load_documents()
    assert {one.source: one.text.strip() for one in found} == {
        "eu/act.md": "Keep the logs.",
        "rule.txt": "Sell no logs.",
    }
    assert {one.word for one in found} == {VERSION_WORD}


def test_a_file_that_states_a_classification_is_labelled_by_it_and_not_read_as_public(tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text(SECRET)
    (tmp_path / "act.md").write_text("Keep the logs.")
    connector = LocalCorpusConnector(tmp_path)
    assert {one.source: one.word != VERSION_WORD for one in connector.load_documents()} == {
        "act.md": False,
        "plan.md": True,
    }
    embedder = Everywhere()
    metric = Regulatory(connector, embedder, Said(lambda _text: 1.0))
    (found,) = metric.batch("s", "a", [turn()])
    assert {one.source for one in found.retrieved_chunks} == {"act.md"}
    assert not any("merger" in one for one in embedder.seen)


def test_a_file_holds_from_when_and_until_when_it_states(tmp_path: Path) -> None:
    """A response is not compared with a rule that is not in force yet, or no longer."""
    stated = {
        "always.md": "",
        "now.md": "public_at: 2020-01-01\nexpires_at: 2999-01-01\n",
        "coming.md": "public_at: 2999-01-01\n",
        "over.md": "expires_at: 2020-01-01\n",
        "old.md": "",
        "new.md": "public_at: 2020-01-01\nsupersedes: old.md\n",
        "kept.md": "",
        "later.md": "public_at: 2999-01-01\nsupersedes: kept.md\n",
    }
    for name, facts in stated.items():
        (tmp_path / name).write_text(f"---\nclassification: public\n{facts}---\nThe rule {name} says this.\n")
    embedder = Everywhere()
    metric = Regulatory(LocalCorpusConnector(tmp_path), embedder, Said(lambda _text: 1.0))
    (found,) = metric.batch("s", "a", [turn()])
    assert {one.source for one in found.retrieved_chunks} == {"always.md", "now.md", "new.md", "kept.md"}
    assert not any(name in one for one in embedder.seen for name in ("coming", "over", "old", "later"))


def test_a_folder_of_secrets_alone_is_not_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text(SECRET)
    embedder = Everywhere()
    with pytest.raises(InvalidArgument, match="contains no text that public/read may read"):
        Regulatory(LocalCorpusConnector(tmp_path), embedder, Said({})).load()
    assert embedder.seen == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"caf\xe9 \xff", "not valid utf-8"),
        (b" \n", "no visible text"),
        (b"---\nclassification: sekret\n---\nx\n", "want"),
        (b"---\npublic_at: soon\n---\nx\n", "soon"),
        (b"---\nclasification: secret\n---\nx\n", "did you mean classification"),
    ],
)
def test_one_file_that_cannot_be_read_stops_the_run_by_its_name(
    tmp_path: Path, content: bytes, why: str
) -> None:
    """If a regulation were silently missing, every response would comply with it."""
    (tmp_path / "act.md").write_text("Keep the logs.")
    (tmp_path / "bad.md").write_bytes(content)
    with pytest.raises(InvalidArgument, match=rf"bad\.md: (.|\n)*{why}(.|\n)*; repair or remove them"):
        LocalCorpusConnector(tmp_path).load_documents()


def test_many_unreadable_files_are_counted(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"bad{number}.md").write_bytes(b"\xff")
    with pytest.raises(InvalidArgument, match="; and 2 more; repair or remove them"):
        LocalCorpusConnector(tmp_path).load_documents()


def test_a_folder_that_is_missing_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="does not exist; want a folder"):
        LocalCorpusConnector(tmp_path / "missing").load_documents()
    with pytest.raises(InvalidArgument, match="contains no documents; add PDF"):
        LocalCorpusConnector(tmp_path).load_documents()
