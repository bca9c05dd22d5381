"""The index of words is derived: if lost or another store's it is made again, and no text is read twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from carag.errors import CorruptFile
from carag.index import TextIndex
from carag.policy import Mask, Search
from carag.policy.mask import Policy
from carag.retrieval import KeptWords, Retriever, ranker_by_name, words
from carag.retrieval.ranking import FUSED
from carag.store.store import CorpusStore
from tests.retrieval.ranking.stores import Clock, collection_of, draw_asked, every, grow, refreshed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEADING = ("{company}", "{form}")
TERMS = ["sales", "lease", "10-k", "delta", "apple", "profit"]
INSTANTS = [Search(Policy(Mask()), as_of) for as_of in (0, 500, 1_000, 2_000)]


@dataclass
class Shop:
    """A store in a directory, and what is read of it."""

    home: Path
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    grown: int = 0
    read: list[int] = field(default_factory=list)
    reports: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.home / "index.words"

    @contextmanager
    def store(self) -> Iterator[CorpusStore]:
        """Open the store; every text that is read of it counts."""
        with CorpusStore.open(self.home / "corpus.db", clock=Clock()) as store:
            plain = store.chunks

            def counted(keys: Any, **more: Any) -> Any:
                self.read.append(len(keys))
                return plain(keys, **more)

            store.chunks = counted  # type: ignore[method-assign]
            yield store

    def grow(self, store: CorpusStore, steps: int = 4) -> None:
        for _ in range(steps):
            grow(store, self.rng, self.grown)
            self.grown += 1

    def follow(self, kept: KeptWords, store: CorpusStore) -> None:
        changes = kept.prepare(lambda stage, done, total, _: self.reports.append((stage, done, total)))
        kept.switch(changes, store.known())

    def texts_read(self) -> int:
        """Count texts read since this was asked last."""
        count, self.read[:] = sum(self.read), []
        return count


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A store with some filings, and no other file."""
    made = Shop(tmp_path)
    with made.store() as store:
        made.grow(store)
    return made


def answers(index: TextIndex) -> list[tuple[Any, ...]]:
    """All that searches find, to the last bit, at several instants."""
    found = [index.search(TERMS, None, [one]) for one in INSTANTS]
    return [
        (*one.keys.tolist(), one.scores.tobytes(), one.stats.admissible, one.stats.length) for one in found
    ]


def made_again(store: CorpusStore, heading: tuple[str, ...] = HEADING) -> list[tuple[Any, ...]]:
    """What an index says that was made of the store in one go."""
    index, labels = TextIndex(), store.labels.of(store.labels.open())
    words.add_words(index, store, labels, heading)
    words.label_words(index, labels)
    return answers(index)


# --- kept ---


def test_what_was_saved_is_not_read_again(shop: Shop) -> None:
    """Closing saves; the next opening has the labels of that instant, and reads no text of the store."""
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        shop.follow(kept, store)
        said, known = answers(kept.index), kept.known_at
        assert shop.texts_read() == len(kept.index) > 10
        kept.close()
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        assert (kept.known_at, answers(kept.index)) == (known, said)
        shop.follow(kept, store)
        assert answers(kept.index) == said
        assert shop.texts_read() == 0
        written = shop.file.stat().st_mtime_ns
        kept.close()
        assert shop.file.stat().st_mtime_ns == written, "nothing changed, so nothing is written"


def test_what_came_since_is_all_that_is_read(shop: Shop) -> None:
    """A file behind the store is brought up to it: new passages are read once, of new labels of old ones no text."""
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        shop.follow(kept, store)
        kept.close()
        before = len(store.labels.open())
        shop.grow(store)
    shop.texts_read()
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        had = len(kept.index)
        shop.follow(kept, store)
        assert shop.texts_read() == len(kept.index) - had > 0
        assert answers(kept.index) == made_again(store)
        assert kept.index.labels().tolist() == store.labels.open().tolist()
        assert len(store.labels.open(known_at=kept.known_at)) != before
        assert kept.known_at == store.known()
        kept.close()


def test_nothing_is_found_before_the_switch(shop: Shop) -> None:
    """Passages are added while searches find those of the instant before; then all change in one step."""
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        shop.follow(kept, store)
        said, known = answers(kept.index), kept.known_at
        shop.grow(store)
        changes = kept.prepare(lambda *_: None)
        assert (answers(kept.index), kept.known_at) == (said, known)
        kept.switch(changes, store.known())
        assert answers(kept.index) == made_again(store) != said
        kept.close()


def test_a_kill_between_adding_and_the_switch_costs_what_was_not_saved(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was added stays in the file without a label; the next opening labels it, and adds the rest."""
    monkeypatch.setattr(words, "_SAVE_PASSAGES", 8)
    monkeypatch.setattr(words, "_BATCH", 4)
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        kept.prepare(lambda *_: None)
        saved = TextIndex.load(shop.file)
        assert 8 <= len(saved) < len(kept.index)
        assert saved.label_count == 0
        # Killed here: nothing is closed.
    shop.texts_read()
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        assert (kept.known_at, len(kept.index)) == (-1, len(saved))
        shop.follow(kept, store)
        assert shop.texts_read() == len(kept.index) - len(saved)
        assert answers(kept.index) == made_again(store)
        assert shop.reports[-1][0] == "words"
        assert shop.reports[-1][1] == shop.reports[-1][2] == len(store.labels.open())
        kept.close()


def test_a_kill_after_the_switch_costs_the_labels(shop: Shop) -> None:
    """The file has the instant before; labels that were closed since are closed when it is opened."""
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        shop.follow(kept, store)
        kept.save()
        shop.grow(store, 3)
        shop.follow(kept, store)
        said, known = answers(kept.index), kept.known_at
    with shop.store() as store:
        again = KeptWords(store, shop.file, HEADING)
        assert -1 < again.known_at < known
        shop.follow(again, store)
        assert (again.known_at, answers(again.index)) == (known, said)
        again.close()


def test_a_file_that_was_written_and_not_noted_is_another(shop: Shop) -> None:
    """A kill between the file and the store's note of it: the note describes the file before, so all is made again."""
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        shop.follow(kept, store)
        kept.save()
        shop.grow(store)
        shop.follow(kept, store)
        kept.index.save(shop.file)
        again = KeptWords(store, shop.file, HEADING)
        assert (again.known_at, len(again.index)) == (-1, 0)
        shop.follow(again, store)
        assert answers(again.index) == answers(kept.index)


def test_a_small_change_waits_and_a_large_one_is_saved(shop: Shop) -> None:
    """`least` saves a sixteenth of the labels or more, and where there is no file."""
    with shop.store() as store:
        shop.grow(store, 30)
        kept = KeptWords(store, shop.file, HEADING)
        shop.follow(kept, store)
        kept.save(least=True)
        assert shop.file.exists()
        noted = store.meta_get("words_known")
        kept._unsaved = kept.index.label_count // 16
        kept.save(least=True)
        assert store.meta_get("words_known") == noted
        kept.known_at += 1
        kept._unsaved += 1
        kept.save(least=True)
        assert store.meta_get("words_known") != noted
        kept.close()


# --- lost, damaged, another's ---


def spoil_header(shop: Shop) -> None:
    content = bytearray(shop.file.read_bytes())
    content[40] ^= 1
    shop.file.write_bytes(content)


def cut(shop: Shop) -> None:
    shop.file.write_bytes(shop.file.read_bytes()[:100])


def forget(shop: Shop) -> None:
    with closing(sqlite3.connect(shop.home / "corpus.db")) as sql, sql:
        sql.execute("DELETE FROM meta WHERE name = 'words_header'")


def swap(shop: Shop) -> None:
    """Put the words of another store there."""
    other = Shop(shop.home / "other", np.random.default_rng(8))
    other.home.mkdir()
    with other.store() as store:
        other.grow(store)
        kept = KeptWords(store, other.file, HEADING)
        other.follow(kept, store)
        kept.close()
    other.file.replace(shop.file)


@pytest.mark.parametrize(
    "harm", [lambda shop: shop.file.unlink(), spoil_header, cut, forget, swap], ids=lambda harm: harm.__name__
)
def test_what_is_not_what_the_store_saved_last_is_made_anew(shop: Shop, harm: Any) -> None:
    """A file that is gone, cut, altered in its header, not noted or another store's: the same answers as before."""
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        shop.follow(kept, store)
        said = answers(kept.index)
        kept.close()
    harm(shop)
    shop.texts_read()
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        assert (kept.known_at, len(kept.index)) == (-1, 0)
        shop.follow(kept, store)
        assert answers(kept.index) == said
        assert shop.texts_read() == len(kept.index)
        kept.close()
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        assert answers(kept.index) == said
        assert shop.texts_read() == 0
        kept.close()


def test_words_under_another_heading_or_cut_otherwise_are_made_anew(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document's heading counts in its terms, and a version of the tokens concerns every term."""
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        shop.follow(kept, store)
        kept.close()
        other = KeptWords(store, shop.file, ("{company}",))
        assert len(other.index) == 0
        shop.follow(other, store)
        assert answers(other.index) == made_again(store, ("{company}",)) != made_again(store)
        other.close()
        same = KeptWords(store, shop.file, ("{company}",))
        assert len(same.index) > 0
        same.close()
        monkeypatch.setattr(words, "TOKENS_VERSION", words.TOKENS_VERSION + 1)
        assert len(KeptWords(store, shop.file, ("{company}",)).index) == 0


def test_damage_behind_a_sound_header_is_refused_and_says_what_to_delete(shop: Shop) -> None:
    """Not read as if it were whole, and not thrown away in silence: somebody should know."""
    with shop.store() as store:
        kept = KeptWords(store, shop.file, HEADING)
        shop.follow(kept, store)
        said = answers(kept.index)
        kept.close()
        content = bytearray(shop.file.read_bytes())
        content[-1] ^= 1
        shop.file.write_bytes(content)
        with pytest.raises(CorruptFile, match=r"delete .*index\.words, and the next opening rebuilds it"):
            KeptWords(store, shop.file, HEADING)
        shop.file.unlink()
        kept = KeptWords(store, shop.file, HEADING)
        shop.follow(kept, store)
        assert answers(kept.index) == said
        kept.close()


# --- with the index ---


def test_index_and_words_are_of_one_instant(shop: Shop) -> None:
    """After every refresh the same labels are open in both, whichever of the files was lost before."""
    rng = np.random.default_rng(3)
    for lost in ((), ("index.words",), ("index.carag",), ("index.words", "index.carag"), ()):
        for name in lost:
            (shop.home / name).unlink()
        with shop.store() as store:
            collection = collection_of(store, shop.home)
            for _ in range(3):
                with collection.reading() as instant:
                    assert instant == store.known() == collection._words.known_at
                    assert collection.index.keys().tolist() == collection.words.labels().tolist()
                    assert collection.words.labels().tolist() == store.labels.open().tolist()
                shop.grow(store, 1)
                refreshed(collection)
            retriever = Retriever(collection, ranker_by_name(FUSED, collection.catalogue))
            asked = draw_asked(rng)
            found = retriever.retrieve(asked.question, asked.decision, asked.k, asked.where)
            collection.close()
        with shop.store() as store:
            collection = collection_of(store, shop.home)
            retriever = Retriever(collection, ranker_by_name(FUSED, collection.catalogue))
            again = retriever.retrieve(asked.question, asked.decision, asked.k, asked.where)
            assert every(again) == every(found)
            collection.close()


def test_a_collection_that_was_closed_reads_no_text_when_it_is_opened(shop: Shop) -> None:
    """Neither to rank nor to prove; its words are those it was closed with."""
    with shop.store() as store:
        collection_of(store, shop.home).close()
    assert shop.texts_read() > 0
    with shop.store() as store:
        collection = collection_of(store, shop.home)
        refreshed(collection)
        assert shop.texts_read() == 0
        assert len(collection.words) > 10
        collection.close()
        assert repr(collection.words) == "<TextIndex: closed>"
