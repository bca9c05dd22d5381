"""A backup from before an erasure brings nothing back unsaid: documents are erased again, or their number is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from carag import Document, Engine, Session
from carag.audit import AuditLog, Recovery
from carag.audit.records.custody import DocumentErasure
from carag.audit.tlog.encoding import b64url
from carag.cli import Exit
from carag.cli.app import run
from carag.engine.backup import Behind, Restored, back_up, restore
from carag.errors import InvalidArgument
from tests.engine.documents import Counting
from tests.remains import remains

if TYPE_CHECKING:
    from pathlib import Path

ASKER = Session(role="employee", purpose="work")
WHO = {"by": "dpo", "approver": "cco"}
TEXTS = {f"memo/{number}": f"Branches report to zqword{number}." for number in range(5)}


class Kept(NamedTuple):
    """A backup, and what was kept elsewhere of two erasures after it, of memo/0 with memo/1, and of memo/2."""

    place: Path
    receipts: dict[str, bytes]
    statements: list[dict[str, Any]]

    def restored(self, statements: list[dict[str, Any]], **more: Any) -> Restored:
        given = {"kept": self.receipts, "accept_loss": True, **more}
        return restore(
            self.place / "backup",
            self.place / "keys",
            self.place / "again",
            erased=lines(statements),
            **given,
        )

    def left(self) -> set[str]:
        """The documents of which the restored store's files have anything."""
        words = {f"zqword{number}".encode(): name for number, name in enumerate(TEXTS)}
        return {words[one] for one in remains(words, self.place / "again")}


def lines(statements: list[dict[str, Any]]) -> bytes:
    return "".join(
        json.dumps(one, sort_keys=True, separators=(",", ":")) + "\n" for one in statements
    ).encode()


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    with Engine.open(tmp_path / "store", profile="generic", embedder=Counting()) as engine:
        engine.add(Document(id=name, text=text, bits=()) for name, text in TEXTS.items())
        back_up(tmp_path / "store", tmp_path / "backup", keys=tmp_path / "keys")
        done = [
            engine.erase(ids, basis=basis, **WHO)
            for ids, basis in ((["memo/0", "memo/1"], "GDPR_17_1"), (["memo/2"], "GDPR_17_1_D"))
        ]
        receipts = {f"{one.receipts[0].seq}.json": one.receipts[0].to_bytes() for one in done}
        statements = [said.to_json() for one in done for said in one.statements]
    return Kept(tmp_path, receipts, statements)


def events(home: Path) -> list[Any]:
    with AuditLog.open(home) as log:
        return [log.record(seq).event for seq in range(log.size)]


def test_a_receipt_of_an_erasure_shows_that_the_backup_is_from_before_it(kept: Kept) -> None:
    """Even with statements, the loss has to be accepted."""
    with pytest.raises(Behind, match="erases 2 documents, so the backup is from before an erasure"):
        kept.restored(kept.statements, accept_loss=False)
    assert not (kept.place / "again").exists()


def test_what_statements_name_is_erased_again_before_the_store_is_put_in_place(kept: Kept) -> None:
    """On the legal basis of the receipt, each with a record of its own."""
    done = kept.restored(kept.statements)
    assert (done.erased, done.unerased, done.rows) == (3, 0, 2)
    assert kept.left() == {"memo/3", "memo/4"}
    said = events(kept.place / "again")
    assert len(said) == done.records
    erasures = [(one.basis.value, len(one.ids)) for one in said if isinstance(one, DocumentErasure)]
    assert erasures == [("GDPR_17_1", 2), ("GDPR_17_1_D", 1)]
    assert not any("ERASED_BACK" in one.why for one in said if isinstance(one, Recovery))
    with Engine.open(kept.place / "again", embedder=Counting()) as engine:
        found = {one.document_id for one in engine.retrieve("Who reports?", ASKER, 50).passages}
    assert found == {"memo/3", "memo/4"}


@pytest.mark.parametrize(("named", "unnamed"), [(0, 3), (1, 2), (2, 1)])
def test_the_log_says_how_many_documents_may_be_back(kept: Kept, named: int, unnamed: int) -> None:
    """Those that no statement names."""
    done = kept.restored(kept.statements[:named])
    assert (done.erased, done.unerased) == (named, unnamed)
    codes = [one.why for one in events(kept.place / "again") if isinstance(one, Recovery)]
    assert sum(one.endswith(f":ERASED_BACK:{unnamed}") for one in codes) == 1
    assert kept.left() == {*TEXTS} - {one["id"] for one in kept.statements[:named]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"salt": b64url(bytes(16))}, "is not about document"),
        ({"id": "memo/4"}, "is not about document"),
        ({"record": 999}, "of which no receipt was given"),
        ({"salt": "AAAA"}, "line 1 of the statements"),
        ({"record": "7"}, "line 1 of the statements"),
        ({"id": 7}, "line 1 of the statements"),
    ],
)
def test_a_statement_that_fits_no_receipt_restores_nothing(
    kept: Kept, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidArgument, match=said):
        kept.restored([kept.statements[0] | change, *kept.statements[1:]])
    assert not (kept.place / "again").exists()


def test_statements_of_erasures_that_the_backup_has_change_nothing(kept: Kept) -> None:
    """Nor do those of a document that came after the backup."""
    with Engine.open(kept.place / "store", embedder=Counting()) as engine:
        back_up(kept.place / "store", kept.place / "newer", keys=kept.place / "newer-keys")
        engine.add([Document(id="memo/9", text="Branches report.", bits=())])
        late = engine.erase(["memo/9"], basis="GDPR_17_1", **WHO)
    statements = [*kept.statements, *(said.to_json() for said in late.statements)]
    done = restore(
        kept.place / "newer",
        kept.place / "newer-keys",
        kept.place / "again",
        kept={**kept.receipts, "late": late.receipts[0].to_bytes()},
        accept_loss=True,
        erased=lines(statements),
    )
    assert (done.erased, done.unerased) == (0, 0)
    assert kept.left() == {"memo/3", "memo/4"}


def test_the_command_erases_again_or_says_what_may_be_back(
    kept: Kept, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both, with one of two erasures stated."""
    (kept.place / "statements.jsonl").write_bytes(lines(kept.statements[:2]))
    words = ["restore", "--from", kept.place / "backup", "--keys", kept.place / "keys", "--accept-loss"]
    for name, content in kept.receipts.items():
        (kept.place / name).write_bytes(content)
        words += ["--receipt", kept.place / name]
    words += ["--store", kept.place / "again", "--erased", kept.place / "statements.jsonl"]
    assert run([str(one) for one in words]) == Exit.OK
    said = capsys.readouterr()
    assert "erased again: 2" in said.out
    assert "may be back, as the log says: 1" in " ".join(said.err.split())
