"""Read the clinical profile's table and the forty notes in plain Python, without CARAG's own code."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from carag import Session
from carag.policy import Profile
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

NOTES = ROOT / "data" / "clinical"
NOW = datetime(2026, 11, 2, 15, tzinfo=UTC)
PROFILE = Profile.open("clinical")
CELLS = [f"{cell.role}/{cell.purpose}" for cell in PROFILE.table.cells]
LISTED = ["nurse/treat", "physician/treat", "therapist/treat", "patient/access"]
"""The cells that ask for patients by number."""
PATIENTS = frozenset(range(10021, 10029))
THERAPISTS = frozenset({90101, 90102})


def session(cell: str, listed: frozenset[int] | set[int] | None = None, **more: Any) -> Session:
    role, purpose = cell.split("/")
    return Session(
        role=role, purpose=purpose, allow_entities=None if listed is None else frozenset(listed), **more
    )


# -- the table in plain words, which knows neither bits nor masks


def may_use(cell: str, note: dict[str, str]) -> bool:
    """Apply 45 CFR Part 164 and 42 CFR Part 2 to what a note states; the patients it is about come later."""
    kind = note["note_type"]
    in_therapy = kind == "psychotherapy" or note.get("psychotherapy_note") == "true"
    of_program = note["sensitivity"] == "substance_use" or note.get("part_two") == "true"
    is_agreed = not of_program or note.get("part_two_consent") == "true"
    is_restricted = note["sensitivity"] == "restricted"
    of_mind = note.get("department") in ("psychiatry", "psychology")
    match cell:
        case "nurse/treat":
            return kind != "billing" and not in_therapy and not is_restricted and is_agreed
        case "physician/treat":
            return kind != "billing" and not in_therapy and is_agreed
        case "therapist/treat":
            return in_therapy or (kind != "billing" and not is_restricted and is_agreed)
        case "billing/bill":
            if in_therapy or is_restricted or note.get("self_paid") == "true":
                return False
            if kind == "billing":
                return is_agreed
            return kind in ("progress", "consultation", "discharge") and not of_program and not of_mind
        case "researcher/research":
            if in_therapy:
                return False
            if note.get("deidentified") in ("safe harbor", "expert determination"):
                return True
            return note.get("research") in ("authorized", "waived") and not is_restricted
        case "quality/improve":
            return kind != "billing" and not (in_therapy or of_mind or of_program or is_restricted)
        case "privacy_officer/audit":
            return not in_therapy
        case "patient/access":
            return not in_therapy and note.get("access_denied") != "true"
    raise AssertionError(cell)


def is_about(cell: str, about: set[int], listed: frozenset[int] | None) -> bool:
    """Patients see what is also about others; all others see nothing beyond their list."""
    if listed is None:
        return True
    return bool(about & listed) if cell == "patient/access" else bool(about) and about <= listed


class Note(NamedTuple):
    stated: dict[str, str]
    about: set[int]
    text: str

    @classmethod
    def read(cls, path: Path) -> Note:
        _, front, text = path.read_text("utf-8").split("---\n", 2)
        stated = dict(line.split(": ", 1) for line in front.splitlines())
        return cls(stated, {int(one) for one in re.findall(r"\d+", stated.pop("entities", ""))}, text.strip())

    @property
    def is_signed(self) -> bool:
        return self.stated["public_at"] < NOW.date().isoformat()


ALL = {path.name: Note.read(path) for path in sorted(NOTES.iterdir())}


def finds(cell: str, listed: frozenset[int] | None) -> set[str]:
    """The notes that a session finds by the plain reading."""
    return {
        name
        for name, note in ALL.items()
        if note.is_signed and may_use(cell, note.stated) and is_about(cell, note.about, listed)
    }
