"""Carry out fifteen attacks on an audit log, and tell which of three auditors detects each.

Every attacker can write to the log's directory; some have stolen the signing key. The first auditor has the directory
and nothing else, so uses the vkey in it. The second got the vkey from elsewhere. The third also kept one
checkpoint outside: the newest receipt somebody holds, an object under a retention lock, a timestamp or a witness's
cosignature each carry one. What each attack must do to each auditor is written down here and tested
(``tests/audit/auditor/test_attacks.py``); the page's table is made from the same list.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.audit import (
    Access,
    AuditLog,
    Checkpoint,
    IndexState,
    Note,
    Outcome,
    Passage,
    PolicyApplied,
    RecordKind,
    SessionSource,
    SigningKey,
    Verdict,
    VerifierKey,
)
from carag.audit.auditor.examine import Examination, Kept, examine_log, kept_checkpoint
from carag.audit.tlog import encoding
from carag.audit.tlog.merkle import Frontier, leaf_hash, stored_hash_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ORIGIN: Final = "audit.example/attacked"
RECORDS: Final = 60
"""Records of the log when it is attacked."""
EARLIER: Final = 50
"""Size of the log when an attacker took a copy, or from which on an attack changes history."""
VICTIM: Final = 20
"""Number of the record that is attacked."""
COLUMNS: Final = ("database only", "public key", "outside anchor")


@dataclass(frozen=True, slots=True)
class Scene:
    """A closed log that an attacker can change, and what the attacker cannot change."""

    home: Path
    vkey: str
    """As the auditor got it, from elsewhere."""
    kept: Kept
    """The newest checkpoint, kept outside."""
    notes: dict[int, str]
    """Every checkpoint that was signed, by size: the people who asked questions hold them."""
    earlier: Path
    """A copy of the directory from when it had ``EARLIER`` records."""

    @property
    def key(self) -> SigningKey:
        """The signing key, stolen."""
        return SigningKey.parse((self.home / "audit.key").read_text())

    @contextlib.contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Open the evidence to write in it, past the log."""
        with contextlib.closing(sqlite3.connect(self.home / "audit.db")) as connection, connection:
            yield connection

    def bodies(self) -> list[bytes]:
        """Read all records."""
        with self.database() as db:
            return [body for (body,) in db.execute("SELECT body FROM rec ORDER BY seq")]

    def rewrite(self, bodies: list[bytes], note: str | None = None, key: SigningKey | None = None) -> None:
        """Replace everything: records, tree, and the checkpoint, by one at hand or one signed now."""
        frontier = Frontier()
        nodes = [node for body in bodies for node in frontier.append(leaf_hash(body))]
        tree = Checkpoint(ORIGIN, frontier.size, frontier.root())
        signed = Note.parse(note) if note else (key or self.key).sign(tree.to_text())
        with self.database() as db:
            for table in ("rec", "node", "cp"):
                db.execute(f"DELETE FROM {table}")  # noqa: S608 # three names from the line above
            db.executemany("INSERT INTO rec VALUES (?, ?)", enumerate(bodies))
            db.executemany(
                "INSERT INTO node VALUES (?, ?)",
                [(stored_hash_index(node.level, node.n), node.hash) for node in nodes],
            )
            size = Checkpoint.parse(signed.text).size
            db.execute("INSERT INTO cp VALUES (?, ?)", (size, signed.to_text()))

    def examine(self) -> tuple[Examination, Examination, Examination]:
        """Ask the three auditors."""
        return (
            examine_log(self.home),
            examine_log(self.home, vkey=self.vkey),
            examine_log(self.home, vkey=self.vkey, kept=[self.kept]),
        )


class Attack(NamedTuple):
    """One attack on a log, and the auditors who must detect it."""

    name: str
    noticed: str
    """For each auditor in turn: D for detected, ``.`` for not."""
    by: str
    """How the third auditor detects it, for the table."""
    says: str
    """Pattern that the third auditor's reason matches."""
    act: Callable[[Scene], None]


def grow(directory: Path, count: int) -> dict[int, str]:
    """Append ``count`` answered questions and return the checkpoint after each."""
    ticks = itertools.count(1_763_755_557_000_000, 1000)
    notes = {}
    with AuditLog.open(directory, origin=ORIGIN, clock=lambda: next(ticks)) as log:
        while log.size < count:
            _ask(log, f"Question {log.size}?")
            notes[log.size] = log.checkpoint()
    return notes


def stage(directory: Path) -> Scene:
    """Make a scene that nobody has attacked."""
    home, earlier = directory / "log", directory / "earlier"
    notes = grow(home, EARLIER)
    shutil.copytree(home, earlier)
    notes |= grow(home, RECORDS)
    vkey = (home / "vkey").read_text().strip()
    kept = kept_checkpoint(notes[RECORDS], VerifierKey.parse(vkey))
    return Scene(home, vkey, kept, notes, earlier)


def again(scene: Scene, directory: Path) -> Scene:
    """Copy a scene, so that it can be attacked again."""
    home = Path(shutil.copytree(scene.home, directory / "log"))
    return Scene(home, scene.vkey, scene.kept, scene.notes, scene.earlier)


def pattern(scene: Scene) -> str:
    """Examine a scene, and write which auditors detect anything as :attr:`Attack.noticed` does."""
    return "".join("." if one.verdict is Verdict.VERIFIED else "D" for one in scene.examine())


def _ask(log: AuditLog, question: str) -> None:
    event = Access(
        kind=RecordKind.QUERY,
        started=1_763_755_555_123_456,
        ended=1_763_755_556_345_678,
        role="buy_side",
        purpose="invest",
        source=SessionSource.ASSERTED,
        as_of=29_395_925,
        policy=PolicyApplied(table=b"T" * 32, masks=((0, 0x10000),)),
        index=IndexState(snapshot=b"S" * 32, admissible=417, plan="exact"),
        outcome=Outcome.ANSWER,
        why="OK",
    )
    passage = Passage("0000320193-23-000001#1", "Net sales fell 3 %.", 0.75, 1 << 27 | 0x21, cited=True)
    log.append(event, secrets={"query": question, "answer": "They fell."}, passages=[passage])


def _changed(body: bytes, **fields: Any) -> bytes:
    return encoding.encode({**encoding.load(body), **fields})


def _renumbered(bodies: list[bytes], start: int) -> list[bytes]:
    return [*bodies[:start], *(_changed(body, seq=seq) for seq, body in enumerate(bodies[start:], start))]


def edit_body(scene: Scene) -> None:
    """Say that somebody else asked."""
    body = _changed(scene.bodies()[VICTIM], role="sell_side")
    with scene.database() as db:
        db.execute("UPDATE rec SET body = ? WHERE seq = ?", (body, VICTIM))


def edit_body_and_leaf(scene: Scene) -> None:
    """Say the same, and put its hash into the tree."""
    edit_body(scene)
    with scene.database() as db:
        leaf = leaf_hash(scene.bodies()[VICTIM])
        db.execute("UPDATE node SET hash = ? WHERE i = ?", (leaf, stored_hash_index(0, VICTIM)))


def delete_middle(scene: Scene) -> None:
    """Remove a row."""
    with scene.database() as db:
        db.execute("DELETE FROM rec WHERE seq = ?", (VICTIM,))


def truncate(scene: Scene) -> None:
    """Remove the newest records, their nodes and the checkpoint, and put back one that was signed back then."""
    scene.rewrite(scene.bodies()[:EARLIER], scene.notes[EARLIER])


def reorder(scene: Scene) -> None:
    """Let two records change places."""
    bodies = scene.bodies()
    with scene.database() as db:
        db.execute("UPDATE rec SET body = ? WHERE seq = ?", (bodies[VICTIM + 1], VICTIM))
        db.execute("UPDATE rec SET body = ? WHERE seq = ?", (bodies[VICTIM], VICTIM + 1))


def append_outside(scene: Scene) -> None:
    """Add a record and its nodes without the log."""
    bodies = scene.bodies()
    forged = _changed(bodies[-1], seq=RECORDS, id="A" * 22)
    scene.rewrite([*bodies, forged], scene.notes[RECORDS])


def foreign_key(scene: Scene) -> None:
    """Write history again, sign it with the attacker's own key and replace the vkey in the directory."""
    bodies, foreign = scene.bodies(), SigningKey(ORIGIN, b"f" * 32)
    bodies[VICTIM] = _changed(bodies[VICTIM], role="sell_side")
    scene.rewrite(bodies, key=foreign)
    (scene.home / "audit.key").write_text(foreign.to_skey())
    (scene.home / "vkey").write_text(f"{foreign.verifier}\n")


def thief_rewrites(scene: Scene) -> None:
    """Write a record again under the stolen key."""
    bodies = scene.bodies()
    bodies[VICTIM] = _changed(bodies[VICTIM], role="sell_side")
    scene.rewrite(bodies)


def thief_deletes(scene: Scene) -> None:
    """Leave a record out, renumber the rest, and add a harmless one at the end."""
    bodies = scene.bodies()
    del bodies[VICTIM]
    bodies.append(_changed(bodies[-1], id="A" * 22))
    scene.rewrite(_renumbered(bodies, VICTIM))


def thief_truncates(scene: Scene) -> None:
    """Cut the end off and sign what is left."""
    scene.rewrite(scene.bodies()[:EARLIER])


def thief_inserts(scene: Scene) -> None:
    """Put a record into the past."""
    bodies = scene.bodies()
    bodies.insert(VICTIM, _changed(bodies[VICTIM], id="A" * 22))
    scene.rewrite(_renumbered(bodies, VICTIM))


def thief_backdates(scene: Scene) -> None:
    """Append a record that claims an earlier time."""
    bodies = scene.bodies()
    then = encoding.load(bodies[VICTIM])["tc"]
    scene.rewrite([*bodies, _changed(bodies[-1], seq=RECORDS, id="A" * 22, tc=then)])


def replay_old(scene: Scene) -> None:
    """Enter an old record once more, with a new number and the time of now, under the stolen key."""
    bodies = scene.bodies()
    now = encoding.load(bodies[-1])["tc"] + 1
    scene.rewrite([*bodies, _changed(bodies[VICTIM], seq=RECORDS, tc=now)])


def roll_back(scene: Scene) -> None:
    """Put an earlier copy of the whole directory, or of the whole machine, back."""
    shutil.rmtree(scene.home)
    shutil.copytree(scene.earlier, scene.home)


def fork(scene: Scene) -> None:
    """Keep two histories from one copy, each appended to honestly, and show the auditor the other one."""
    roll_back(scene)
    grow(scene.home, RECORDS + 5)


ATTACKS: Final = (
    Attack("edit a record in place", "DDD", "leaf hash", f"record {VICTIM} was altered", edit_body),
    Attack("edit a record and its leaf hash", "DDD", "tree nodes above it", "was altered", edit_body_and_leaf),
    Attack("delete a row in the middle", "DDD", "gap in the numbers", "is missing", delete_middle),
    Attack("cut the end off, with nodes, under an old checkpoint", "..D", "checkpoint longer than the log",
           "cut short", truncate),
    Attack("let two rows change places", "DDD", "number in the record", "says it is record", reorder),
    Attack("append past the log", "DDD", "no checkpoint covers it", "is beyond the signed", append_outside),
    Attack("write history again under another key", ".DD", "signature", "not signed by", foreign_key),
    Attack("stolen key: write a record again", "..D", "root at the kept size", "not those", thief_rewrites),
    Attack("stolen key: delete and renumber", "..D", "root at the kept size", "not those", thief_deletes),
    Attack("stolen key: cut the end off", "..D", "checkpoint longer than the log", "cut short", thief_truncates),
    Attack("stolen key: insert into the past", "..D", "root at the kept size", "not those", thief_inserts),
    Attack("stolen key: append backdated", "DDD", "commit times run backwards", "earlier commit time", thief_backdates),
    Attack("stolen key: enter an old record again", "DDD", "an id comes twice", "entered twice", replay_old),
    Attack("put an earlier copy of everything back", "..D", "checkpoint longer than the log", "cut short",
           roll_back),
    Attack("keep two histories and show one to each", "..D", "root at the kept size", "not those", fork),
)  # fmt: skip


def table() -> str:
    """Write the page's table from :data:`ATTACKS`."""
    lines = [f"| attack | {' | '.join(COLUMNS)} | noticed by |", "|---|---|---|---|---|"]
    for attack in ATTACKS:
        marks = " | ".join("detected" if mark == "D" else "**no**" for mark in attack.noticed)
        lines.append(f"| {attack.name} | {marks} | {attack.by} |")
    totals = [sum(attack.noticed[column] == "D" for attack in ATTACKS) for column in range(len(COLUMNS))]
    lines.append(f"| **total** | {' | '.join(f'**{n} of {len(ATTACKS)}**' for n in totals)} | |")
    return "\n".join(lines)
