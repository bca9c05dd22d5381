"""What a log proves to itself at opening, and to the scrub while it runs."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from carag.audit import Checkpoint, Note, SigningKey
from carag.audit.log.rehash import Rehash, _paced, _subtree_at
from carag.audit.tlog.merkle import Frontier, leaf_hash, stored_hash_index
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument

# -- rollback


def kept_forms(log, receipt):
    """Give the three things that are handed out and can be kept."""
    return {"checkpoint": log.checkpoint(), "proof": receipt.proof, "receipt": receipt.to_bytes().decode()}


@pytest.mark.parametrize("form", ["checkpoint", "proof", "receipt"])
def test_a_rolled_back_log_does_not_open_against_what_was_kept(tmp_path, build, form):
    """The whole directory put back: invisible from within, plain against anything kept elsewhere."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
    earlier = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with build.open_log(tmp_path) as log:
        kept = kept_forms(log, build.ask(log))[form]
        build.ask(log)
    build.open_log(tmp_path, not_before=kept).close()
    for path, content in earlier.items():
        path.write_bytes(content)
    with pytest.raises(CorruptFile, match=r"rollback: there are 3 records, .* covers 4"):
        build.open_log(tmp_path, not_before=kept)
    build.open_log(tmp_path).close()


def test_a_rewritten_history_does_not_open_against_what_was_kept(tmp_path, build):
    """As long as before and signed by the log's own key, and still not what it was."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
    earlier = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with build.open_log(tmp_path) as log:
        kept = kept_forms(log, build.ask(log))
    for path, content in earlier.items():
        path.write_bytes(content)
    with build.open_log(tmp_path, clock=itertools.count(2 * 10**15).__next__) as log:
        build.grow(log, 4)
    for form in kept.values():
        with pytest.raises(CorruptFile, match="rollback: the first 4 records"):
            build.open_log(tmp_path, not_before=form)


@pytest.mark.parametrize("count", range(9))
def test_every_earlier_checkpoint_is_accepted(tmp_path, build, count):
    """Nothing that the log ever signed is held against it."""
    with build.open_log(tmp_path) as log:
        kept = [log.checkpoint()] + [(build.ask(log), log.checkpoint())[1] for _ in range(count)]
    for text in kept:
        build.open_log(tmp_path, not_before=text).close()


def test_a_stranger_checkpoint_is_the_callers_mistake(tmp_path, build):
    """Garbage, another log's checkpoint, or one that somebody else signed does not prove a rollback."""
    with build.open_log(tmp_path / "other", origin="audit.example/other") as other:
        build.ask(other)
        foreign = other.checkpoint()
    with build.open_log(tmp_path / "log") as log:
        build.ask(log)
        text = Note.parse(log.checkpoint()).text
    resigned = SigningKey(build.ORIGIN, b"f" * 32).sign(text).to_text()
    for wrong in ("", "garbage", '{"format":1}\n', foreign, resigned):
        with pytest.raises(InvalidArgument):
            build.open_log(tmp_path / "log", not_before=wrong)
    build.open_log(tmp_path / "log").close()


def test_a_database_put_back_alone_is_noticed(tmp_path, build):
    """The directory itself keeps the checkpoint of the last close."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 2)
    earlier = (tmp_path / "audit.db").read_bytes()
    with build.open_log(tmp_path) as log:
        build.ask(log)
    (tmp_path / "audit.db").write_bytes(earlier)
    (tmp_path / "private.key").unlink()
    with pytest.raises(CorruptFile, match=r"rollback: there are 2 records.*pinned covers 3"):
        build.open_log(tmp_path)


def test_a_damaged_pin_is_noticed(tmp_path, build):
    """It is not skipped."""
    build.open_log(tmp_path).close()
    (tmp_path / "pinned").write_bytes(b"\xff")
    with pytest.raises(CorruptFile, match="pinned is not a checkpoint"):
        build.open_log(tmp_path)


# -- hashing again


def test_a_storage_index_finds_its_subtree():
    """The inverse of the numbering, for every node of a tree of 200 leaves."""
    frontier = Frontier()
    for n in range(200):
        for level, place, _ in frontier.append(leaf_hash(b"%d" % n)):
            assert _subtree_at(stored_hash_index(level, place)) == (level, place)


@pytest.fixture(scope="module")
def forty(tmp_path_factory, build):
    """Keep one log of forty records open; tests that damage it copy nothing, they restore."""
    with build.open_log(tmp_path_factory.mktemp("forty")) as log:
        build.grow(log, 40)
        yield log


@pytest.mark.parametrize("level", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("start", [0, 1, 7, 8, 31])
def test_subtrees_and_single_leaves_come_to_the_same(forty, monkeypatch, level, start):
    """Whatever is hashed at a time, and from wherever: the frontier and the last commit time are the log's."""
    monkeypatch.setattr("carag.audit.log.rehash._LEVEL", level)
    rehash = Rehash(forty._backend, forty.origin, start)
    assert sum(rehash.advance(29 if start < 29 else start)) == max(29, start) - start
    list(rehash.advance(40))
    assert rehash.frontier.root() == forty._tip.frontier.root()
    assert rehash.committed == forty._tip.committed
    rehash.nothing_beyond()


@pytest.mark.parametrize("level", [1, 2, 4, 10])
@pytest.mark.parametrize("seq", [0, 5, 16, 39])
def test_an_edit_anywhere_is_found_and_the_log_writes_no_more(tmp_path, build, monkeypatch, level, seq):
    """The scrub names the record; until the log is opened again, every append is refused."""
    monkeypatch.setattr("carag.audit.log.rehash._LEVEL", level)
    with build.open_log(tmp_path) as log:
        build.grow(log, 40)
        assert log.scrub() == 40
        change = "CAST(replace(CAST(body AS TEXT), 'invest', 'advise') AS BLOB)"
        build.edit(tmp_path / "audit.db", f"UPDATE rec SET body = {change} WHERE seq = {seq}")  # noqa: S608
        for check in (log.scrub, log.verify):
            with pytest.raises(CorruptFile, match=f"record {seq} was altered"):
                check()
        with pytest.raises(AuditUnavailable, match=f"damaged.*record {seq} was altered"):
            build.ask(log)
        assert log.size == 40


@pytest.mark.parametrize("index", [2, 6, 40, 62, 77])
def test_an_altered_node_is_named(tmp_path, build, monkeypatch, index):
    """Inner nodes are compared one by one, in whole subtrees as well."""
    monkeypatch.setattr("carag.audit.log.rehash._LEVEL", 4)
    with build.open_log(tmp_path) as log:
        build.grow(log, 40)
        build.edit(tmp_path / "audit.db", f"UPDATE node SET hash = zeroblob(32) WHERE i = {index}")  # noqa: S608
        level, n = _subtree_at(index)
        named = rf"tree node \({level}, {n}\)" if level else f"record {n}"
        with pytest.raises(CorruptFile, match=f"{named} was altered"):
            log.scrub()


@pytest.mark.parametrize(
    "change",
    [
        b'"seq":4,"seq":3,',  # said twice
        b'"seq":"3",',
        b'"seq":03,',
        b'"seq":4,',
    ],
)
def test_a_record_says_where_it_stands_once(tmp_path, build, change):
    """The quick look at a record's place gives way to a strict one as soon as anything is odd."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 5)
        body = log._backend.body(3).replace(b'"seq":3,', change)
        build.edit(tmp_path / "audit.db", ("UPDATE rec SET body = ? WHERE seq = 3", (body,)))
        with pytest.raises(CorruptFile, match="record"):
            log.verify()


def test_a_text_that_looks_like_a_place_is_only_a_text(tmp_path, build):
    """Quotes inside a text are escaped, so nothing anybody names a chunk can pass for a key."""
    from carag.audit import Passage

    odd = Passage('"seq":7,"tc":1,"log":"x"', "text", 0.5, build.WORD, cited=True)
    with build.open_log(tmp_path) as log:
        receipt = log.append(build.access(), secrets=build.SECRETS, passages=[odd])
        assert log.record(0).hits == (odd.hit,)
        assert log.record(0).to_bytes() == receipt.record
        assert log.verify().size == 1


def test_the_scrub_keeps_to_its_rate_and_stops_when_told():
    """At a limited rate, by its own clock; a stop ends it between two steps."""
    pauses = []

    def wait(seconds):
        pauses.append(seconds)
        return len(pauses) == 3

    assert list(_paced(iter([100] * 10), 1000, wait)) == [100] * 3
    assert [round(pause, 1) for pause in pauses] == [0.1, 0.2, 0.3]
    assert list(_paced(iter([100] * 10), None, wait)) == [100] * 10


def test_damage_is_found_in_the_background(tmp_path, build):
    """A log that scrubs itself refuses to write soon after its file was altered, and closes at once."""
    log = build.open_log(tmp_path)
    build.grow(log, 20)
    log.scrub_in_background(rate=1e6, every=0.01)
    log.scrub_in_background()
    build.ask(log)
    build.edit(tmp_path / "audit.db", "UPDATE rec SET body = x'7b7d' WHERE seq = 3")
    until = time.monotonic() + 30
    while log.damage() is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    with pytest.raises(AuditUnavailable, match="damaged"):
        build.ask(log)
    log.close()
    assert not any(thread.name == "carag-audit-scrub" for thread in threading.enumerate())


def test_a_scrub_is_cut_short_by_closing(tmp_path, build, monkeypatch):
    """A slow pass over a long log does not hold up the end."""
    monkeypatch.setattr("carag.audit.log.rehash._LEVEL", 1)
    log = build.open_log(tmp_path)
    build.grow(log, 20)
    log.scrub_in_background(rate=1)
    began = time.monotonic()
    log.close()
    assert time.monotonic() - began < 10
    build.open_log(tmp_path).close()


def test_verifying_lets_others_write(tmp_path, build, monkeypatch):
    """Appends during a verification are neither held up nor taken for damage."""
    monkeypatch.setattr("carag.audit.log.rehash._LEVEL", 2)
    with build.open_log(tmp_path) as log:
        build.grow(log, 20)
        stop = threading.Event()

        def write():
            while not stop.is_set():
                build.ask(log)

        writers = [threading.Thread(target=write) for _ in range(2)]
        for writer in writers:
            writer.start()
        sizes, deadline = [], time.monotonic() + 60
        while len(sizes) < 10 or (sizes[-1] == 20 and time.monotonic() < deadline):
            sizes.append(log.verify().size)  # a writer's first sync may outlast ten of these
        stop.set()
        for writer in writers:
            writer.join()
        assert sizes == sorted(sizes)
        assert sizes[-1] > 20
        assert log.verify() == Checkpoint.parse(Note.parse(log.checkpoint()).text)


def test_reads_go_on_while_a_batch_is_written(tmp_path, build):
    """A proof does not wait for the disk, and sees whole batches only."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 3)
        append, reached, go = log._backend.append, threading.Event(), threading.Event()

        def held(batch):
            append(batch)  # within the turn, which is not over
            reached.set()
            assert go.wait(30)

        log._backend.append = held
        thread = threading.Thread(target=build.ask, args=(log,))
        thread.start()
        assert reached.wait(30)
        assert (log.size, log._backend.size()) == (3, 3)
        assert log.record(2).seq == 2
        log.prove(1)
        go.set()
        thread.join()
        assert log.size == 4


def test_a_log_with_a_second_copy_is_refused_until_the_note_is_moved_out(tmp_path, build):
    """The error says that the log here is complete and what to do; afterwards every record is there."""
    with build.open_log(tmp_path) as log:
        build.grow(log, 2)
    (tmp_path / "evidence.url").write_text("postgresql://carag_app@db/audit\n")
    with pytest.raises(
        InvalidArgument, match=r"the log in .* is complete\. Move .* carag share URL --admin URL"
    ):
        build.open_log(tmp_path)
    (tmp_path / "evidence.url").unlink()
    with build.open_log(tmp_path) as log:
        assert log.verify().size == 2
