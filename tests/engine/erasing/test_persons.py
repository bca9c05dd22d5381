"""Two persons erase documents, unless the profile says that one is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from carag import Engine
from carag.errors import InvalidArgument
from carag.policy.shipped import shipped_text
from tests.engine.documents import Counting
from tests.engine.erasing.canaries import canary

if TYPE_CHECKING:
    from pathlib import Path


def profile(folder: Path, said: str) -> Path:
    """The generic profile with lines of its own before its first table."""
    folder.mkdir()
    text = shipped_text("generic", "profile.toml")
    first = text.index("\n[")
    (folder / "profile.toml").write_text(f"{text[:first]}\n{said}\n{text[first:]}", "utf-8")
    (folder / "roles.toml").write_text(shipped_text("generic", "roles.toml"), "utf-8")
    return folder


def test_one_person_erases_where_the_profile_says_so(tmp_path: Path) -> None:
    """On record without an approver, answers included; a person who is named must still be another one."""
    own = profile(tmp_path / "profile", "[erasure]\ntwo_persons = false")
    with Engine.open(tmp_path / "store", profile=own, embedder=Counting()) as engine:
        engine.add([canary(1), canary(2)])
        with pytest.raises(InvalidArgument, match="cannot approve their own request"):
            engine.erase([canary(1).id], basis="GDPR_17_1", by="officer", approver="Officer")
        done = engine.erase([canary(1).id], basis="GDPR_17_1", by="officer")
        opened = engine.log.private.openings(done.receipts[0].seq)
        assert {name: one.value for name, one in opened.items() if name != "targets"} == {"actor": "officer"}
        two = engine.erase([canary(2).id], basis="GDPR_17_1", by="officer", approver="chief")
        assert engine.log.private.openings(two.receipts[0].seq)["approver"].value == "chief"


@pytest.mark.parametrize("said", ["", "[erasure]\ntwo_persons = true"])
def test_two_persons_by_default(tmp_path: Path, said: str) -> None:
    own = profile(tmp_path / "profile", said)
    with Engine.open(tmp_path / "store", profile=own, embedder=Counting()) as engine:
        engine.add([canary(1)])
        size = engine.log.size
        with pytest.raises(InvalidArgument, match="name the person who acts and the person who approves"):
            engine.erase([canary(1).id], basis="GDPR_17_1", by="officer")
        assert engine.log.size == size
