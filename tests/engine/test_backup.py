"""A backup of a store in use has all that was acknowledged before it, and a restore tells what it lacks."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carag import Document, Engine, Session
from carag.audit import AuditLog, Basis, Checkpoint, Recovery, erase, place_hold
from carag.audit._files import WriterLock
from carag.audit.anchors import Evidence
from carag.audit.anchors.anchor import check_known
from carag.audit.receipts.receipt import checkpoint_in
from carag.audit.tlog.note import Note
from carag.engine.backup import Behind, back_up, restore
from carag.engine.snapshot import Held, Manifest, Pinned
from carag.errors import AuditUnavailable, CorruptFile, InvalidArgument
from tests.audit.log.earlier import laid_out_as_earlier

if TYPE_CHECKING:
    import sqlite3

ROOT = Path(__file__).parents[2]
WORKER = Session(role="employee", purpose="work", subject="ana@bank.example")
QUESTION = "When do branches report?"
KEYS = {"audit.key", "private.key"}


def memo(number: int, text: str = "Branches report on the fifth of May.") -> Document:
    return Document(id=f"memo/{number}", text=text, bits=["INTERNAL"])


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("backup") / "store"
    with Engine.open(home, profile="generic", embedder="wordllama") as engine:
        engine.add([memo(number) for number in range(3)])
    return home


@pytest.fixture
def home(founded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(founded, tmp_path / "store"))


@pytest.fixture
def backup(home: Path, tmp_path: Path) -> Path:
    back_up(home, tmp_path / "backup", keys=tmp_path / "keys")
    return tmp_path / "backup"


def events(home: Path) -> list[Any]:
    with AuditLog.open(home) as log:
        return [log.record(seq).event for seq in range(log.size)]


def found(home: Path) -> list[str]:
    with Engine.open(home, create=False) as engine:
        return [one.chunk_id for one in engine.retrieve(QUESTION, WORKER).passages]


def test_a_restored_store_answers_as_the_one_that_was_backed_up(home: Path, tmp_path: Path) -> None:
    """The same passages, under a log that continues; the backup and the restore are on record."""
    before = found(home)
    done = back_up(home, tmp_path / "backup", keys=tmp_path / "keys")
    assert done.is_on_record
    assert found(home) == before
    restored = restore(tmp_path / "backup", tmp_path / "keys", tmp_path / "again")
    assert (restored.backup_records, restored.records, restored.lost) == (done.records, done.records + 1, 0)
    assert restored.rows == 3
    assert found(tmp_path / "again") == before
    said = [one.why for one in events(tmp_path / "again") if isinstance(one, Recovery)]
    assert said == ["BACKED_UP", f"RESTORED:{done.records}"]


def test_of_a_live_store_a_backup_is_made_and_says_that_it_is_not_on_record(
    home: Path, tmp_path: Path
) -> None:
    with Engine.open(home) as engine:
        receipt = engine.retrieve(QUESTION, WORKER).receipt
        done = back_up(home, tmp_path / "backup", keys=tmp_path / "keys")
        assert (done.records, done.is_on_record) == (engine.log.size, False)
        engine.retrieve(QUESTION, WORKER)
    restored = restore(
        tmp_path / "backup", tmp_path / "keys", tmp_path / "again", kept={"receipt": receipt.to_bytes()}
    )
    assert restored.compared == 1
    with AuditLog.open(tmp_path / "again") as log:
        assert log.private.openings(receipt.seq)["query"].value == QUESTION


def test_data_and_keys_lie_apart_readable_by_their_owner_alone(backup: Path, tmp_path: Path) -> None:
    """No key is in the data, under whatever name, and no file or directory is open to others."""
    assert {one.name for one in (tmp_path / "keys").iterdir()} == KEYS
    secrets = [(tmp_path / "keys" / name).read_bytes() for name in KEYS]
    lines = [line.split()[-1] for secret in secrets for line in secret.splitlines()]
    for path in backup.rglob("*"):
        assert not path.is_file() or not any(line in path.read_bytes() for line in lines)
    for place in (backup, tmp_path / "keys"):
        assert place.stat().st_mode & 0o077 == 0
        assert all(one.stat().st_mode & 0o077 == 0 for one in place.iterdir())
    assert not list(tmp_path.glob(".*"))


def test_without_a_place_for_keys_none_are_copied(home: Path, tmp_path: Path) -> None:
    assert not back_up(home, tmp_path / "backup").has_keys
    with pytest.raises(InvalidArgument, match=r"has no audit\.key"):
        restore(tmp_path / "backup", tmp_path / "backup", tmp_path / "again")
    assert restore(tmp_path / "backup", home, tmp_path / "again").rows == 3  # wherever they were kept


@pytest.mark.parametrize(
    ("to", "keys"),
    [
        ("backup", "backup"),
        ("backup", "backup/keys"),
        ("keys/backup", "keys"),
        ("store/backup", "keys"),
        ("backup", "store/keys"),
    ],
)
def test_keys_within_the_data_are_refused(home: Path, tmp_path: Path, to: str, keys: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidArgument, match="separate directories"):
        back_up(home, tmp_path / to, keys=tmp_path / keys)
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_that_is_there_is_replaced(home: Path, backup: Path, tmp_path: Path) -> None:
    """Neither by a backup nor by a restore: not even a file."""
    (tmp_path / "file").touch()
    for taken in (home, backup, tmp_path / "file"):
        with pytest.raises(InvalidArgument, match="exists already"):
            back_up(home, taken)
        with pytest.raises(InvalidArgument, match="exists already"):
            restore(backup, tmp_path / "keys", taken)
    with pytest.raises(InvalidArgument, match="does not hold a store"):
        back_up(tmp_path / "nothing", tmp_path / "other")
    with pytest.raises(InvalidArgument, match="is not a backup"):
        restore(tmp_path / "nothing", tmp_path / "keys", tmp_path / "other")
    assert not (tmp_path / "other").exists()
    (tmp_path / "empty").mkdir()
    assert restore(backup, tmp_path / "keys", tmp_path / "empty").rows == 3


def test_no_damaged_byte_of_data_or_keys_is_restored(backup: Path, tmp_path: Path) -> None:
    """A bit flipped anywhere in any file, a file cut short, gone or added: refused, and nothing is in place."""
    spoilt = tmp_path / "spoilt"
    for path in sorted([*backup.rglob("*"), *(tmp_path / "keys").iterdir()]):
        size = path.stat().st_size
        for at in {0, size // 3, size // 2, size - 1}:
            _, damaged = _copies(backup, tmp_path, spoilt, path)
            data = bytearray(damaged.read_bytes())
            data[at] ^= 1
            damaged.write_bytes(data)
            _refused(spoilt, tmp_path)
        _, damaged = _copies(backup, tmp_path, spoilt, path)
        damaged.write_bytes(damaged.read_bytes()[:-1])
        _refused(spoilt, tmp_path)
        damaged.unlink()
        _refused(spoilt, tmp_path)
    shutil.rmtree(spoilt)
    shutil.copytree(backup, spoilt / "data")
    (spoilt / "data" / "more").touch()
    with pytest.raises(CorruptFile, match="'more' is missing or was added"):
        restore(spoilt / "data", tmp_path / "keys", tmp_path / "again")


def _copies(backup: Path, tmp_path: Path, spoilt: Path, path: Path) -> tuple[Path, Path]:
    shutil.rmtree(spoilt, ignore_errors=True)
    shutil.copytree(backup, spoilt / "data")
    shutil.copytree(tmp_path / "keys", spoilt / "keys")
    is_data = path.is_relative_to(backup)
    return spoilt, spoilt / ("data" if is_data else "keys") / path.name


def _refused(spoilt: Path, tmp_path: Path) -> None:
    with pytest.raises((CorruptFile, InvalidArgument, AuditUnavailable)):
        restore(spoilt / "data", spoilt / "keys", tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "change",
    [
        {"files": [{"name": "../audit.key", "sha256": "0" * 64, "size": 1}]},
        {"files": [{"name": "anchors/../../x", "sha256": "0" * 64, "size": 1}]},
        {"files": []},
        {"format": "carag-backup/v2"},
        {"made": "today"},
        {"checkpoint": "log.example/1\n"},
        {"more": 1},
    ],
    ids=str,
)
def test_a_manifest_of_somebody_elses_is_refused(
    backup: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    """Whatever it names: a path out of the directory, another format, no files."""
    manifest = backup / "manifest.json"
    stated = json.loads(manifest.read_bytes())
    manifest.write_text(
        json.dumps({**stated, **change}, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    )
    with pytest.raises(CorruptFile, match="not a valid manifest"):
        restore(backup, tmp_path / "keys", tmp_path / "again")


def test_another_logs_keys_or_receipts_are_told_from_ones_own(
    backup: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    with AuditLog.open(other) as log:
        receipt = log.append(Recovery("DRILL")).to_bytes()
    with pytest.raises(CorruptFile):
        restore(backup, other, tmp_path / "again")
    for alien in (receipt, b"no receipt"):
        with pytest.raises(InvalidArgument, match=r"receipt\.json says nothing about this log"):
            restore(backup, tmp_path / "keys", tmp_path / "again", kept={"receipt.json": alien})
    assert not (tmp_path / "again").exists()


class Ledger:
    """An anchor that holds the newest checkpoint in a file."""

    kind, place = "ledger", "a file"

    def __init__(self, path: Path) -> None:
        self.path = path

    def submit(self, submission: Any) -> Evidence:
        if self.path.exists():
            known = Checkpoint.parse(Note.parse(self.path.read_text()).text)
            check_known(known, submission, self.place)
        self.path.write_text(submission.checkpoint.to_text())
        return Evidence(self.kind, self.place, submission.checkpoint, submission.now)

    def confirm(self, evidence: Evidence, keys: Any) -> Checkpoint:
        return evidence.check_signed(keys)


def test_a_restore_behind_a_receipt_or_an_anchor_is_noticed_and_can_be_accepted_on_record(
    home: Path, tmp_path: Path
) -> None:
    """Both sizes are told; accepted, the log itself says from how many to how many records it was put back."""
    ledger = Ledger(tmp_path / "ledger")
    with Engine.open(home, anchors=[ledger]) as engine:
        done = back_up(home, tmp_path / "backup", keys=tmp_path / "keys")
        later = [engine.retrieve(QUESTION, WORKER).receipt.to_bytes() for _ in range(3)][-1]
    known = {"kept": {"later.json": later}}, {"anchors": [ledger]}
    for given in known:
        before = ledger.path.read_bytes()
        with pytest.raises(Behind, match="the backup is behind") as behind:
            restore(tmp_path / "backup", tmp_path / "keys", tmp_path / "again", **given)
        assert behind.value.records == done.records
        assert not (tmp_path / "again").exists()
        assert ledger.path.read_bytes() == before
    # A record to begin with was lost: of the ledger's own evidence, whose size the backup does not reach.
    restored = restore(
        tmp_path / "backup",
        tmp_path / "keys",
        tmp_path / "again",
        kept={"later.json": later},
        accept_loss=True,
    )
    covered = Checkpoint.parse(checkpoint_in(later).text).size
    assert restored.lost == covered - done.records > 0
    assert Recovery(f"RESTORED_WITH_LOSS:{done.records}/{covered}") in events(tmp_path / "again")
    assert found(tmp_path / "again")


def test_a_store_that_an_earlier_version_holds_is_backed_up_and_restored(home: Path, tmp_path: Path) -> None:
    """Its values are in a file of their own, and in the log's once it is restored."""
    found(home)
    path = laid_out_as_earlier(home)
    before = path.read_bytes()
    lock = WriterLock(home / "audit.lock")
    done = back_up(home, tmp_path / "backup", keys=tmp_path / "keys")
    lock.release()
    assert (done.is_on_record, path.read_bytes()) == (False, before)
    assert "private.db" in Manifest.read(tmp_path / "backup").files
    restore(tmp_path / "backup", tmp_path / "keys", tmp_path / "again")
    with AuditLog.open(tmp_path / "again") as log:
        assert log.private.of_subject("ana@bank.example")
    assert not (tmp_path / "again" / "private.db").exists()


def test_a_backup_with_a_second_copy_of_its_log_is_restored_as_a_loss_on_record(
    backup: Path, tmp_path: Path
) -> None:
    """Made up to 0.3: the server that it names may have later records, and is not asked."""
    (backup / "evidence.url").write_text("postgresql://carag_app@db/audit\n")
    held = Held.of(backup / "evidence.url")
    manifest = Manifest.read(shutil.copytree(backup, tmp_path / "bare", ignore=lambda *_: ["evidence.url"]))
    more = replace(manifest, files={**manifest.files, "evidence.url": held})
    (backup / "manifest.json").write_bytes(more.to_bytes())
    with pytest.raises(Behind, match="second copy may have later records"):
        restore(backup, tmp_path / "keys", tmp_path / "again")
    restored = restore(backup, tmp_path / "keys", tmp_path / "again", accept_loss=True)
    assert restored.findings
    assert events(tmp_path / "again")[-1].why.startswith("RESTORED_WITH_LOSS:")
    assert len(found(tmp_path / "again")) == 3


def test_an_anchor_that_nobody_reaches_restores_nothing(backup: Path, tmp_path: Path) -> None:
    """Not to know is not to be sure."""

    class Down(Ledger):
        def submit(self, submission: Any) -> Evidence:
            from carag.errors import AnchorUnavailable

            raise AnchorUnavailable("it is down")

    with pytest.raises(Behind, match="it is down"):
        restore(backup, tmp_path / "keys", tmp_path / "again", anchors=[Down(tmp_path / "ledger")])
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("name", ["audit.db", "corpus.db"])
@pytest.mark.parametrize("what", ["bring", "hold", "erase", "rotate", "ask"])
def test_whatever_comes_between_two_snapshots_they_are_of_one_state(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, name: str
) -> None:
    """An ingest, a hold, an erasure or a new key has them taken again; a question has not."""
    from carag.audit.operations.rotation import rotate

    taken: list[str] = []
    snapshot = Pinned._snapshot

    with Engine.open(home) as engine:
        first = engine.retrieve(QUESTION, WORKER).receipt

        def disturbed(self: Pinned, asked: str) -> sqlite3.Connection:
            taken.append(asked)
            held = snapshot(self, asked)
            if asked == name and taken.count(name) == 1:
                disturb()
            return held

        def disturb() -> None:
            if what == "bring":
                engine.add([memo(7, "A branch was closed.")])
            elif what == "hold":
                place_hold(engine.log, "MATTER-7", actor="counsel")
            elif what == "erase":
                # A snapshot that is held keeps the write-ahead log, so the erasure says that it is not finished.
                with pytest.raises(AuditUnavailable, match="another program"):
                    erase(engine.log, records=[first.seq], basis=Basis.UNLAWFUL, actor="a", approver="b")
            elif what == "rotate":
                rotate(engine.log, overlap=0)
            else:
                engine.retrieve(QUESTION, WORKER)

        monkeypatch.setattr(Pinned, "_snapshot", disturbed)
        done = back_up(home, tmp_path / "backup", keys=tmp_path / "keys")
        monkeypatch.undo()
        last = engine.log.size
    assert taken.count("corpus.db") == (1 if what == "ask" else 2)
    assert done.records == last if what != "ask" else done.records >= last - 1
    restore(tmp_path / "backup", tmp_path / "keys", tmp_path / "again")
    assert set(found(tmp_path / "again")) >= {f"memo/{number}:00000" for number in range(3)}
