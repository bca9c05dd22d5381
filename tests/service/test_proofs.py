"""A receipt goes only to its owner; checkpoint and tiles are files from which any proof can be made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit import Note, Recovery, Verdict, erase, verify_receipt
from carag.audit.tlog import merkle
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.tiles import TILE_WIDTH, Tile
from carag.service.app import application
from carag.service.service import Service
from tests.service import conftest
from tests.service.conftest import AS_OFFICER, OFFICER, QUESTION, Asked, denials, token

if TYPE_CHECKING:
    from pathlib import Path

    from carag import Engine


def test_a_receipt_goes_to_its_owner(asked: Asked, engine: Engine) -> None:
    """It verifies, and opens nothing."""
    seq = asked.post("ask", {"question": QUESTION}, bearer=token()).json()["record"]
    answer = asked("GET", f"/v1/receipts/{seq}", bearer=token())
    assert 200 == answer.status_code
    checked = verify_receipt(answer.content, engine.vkey)
    assert (Verdict.VERIFIED, seq) == (checked.verdict, checked.record.seq)  # type: ignore[union-attr]
    assert {} == answer.json()["openings"]
    assert set(answer.json()["hits"]) == {None}


def test_another_person_s_receipt_looks_like_an_absent_one(asked: Asked, engine: Engine) -> None:
    """In the same bytes; so does a record that is not a request, and one whose person was erased."""
    seq = asked.post("ask", {"question": QUESTION}, bearer=token()).json()["record"]
    other = token(**OFFICER)
    mine = asked.post("ask", {"question": QUESTION, **AS_OFFICER}, bearer=other).json()["record"]
    assert 200 == asked("GET", f"/v1/receipts/{mine}", bearer=other).status_code
    absent = asked("GET", "/v1/receipts/9007199254740991", bearer=other)
    assert (404, "NOT_FOUND") == (absent.status_code, absent.json()["code"])
    for number in (seq, 0, seq + 1000):
        answer = asked("GET", f"/v1/receipts/{number}", bearer=other)
        assert (404, absent.content, absent.headers.raw) == (
            answer.status_code,
            answer.content,
            answer.headers.raw,
        )
    erase(engine.log, actor="olga", approver="ben", basis="GDPR_17_1_D", records=[mine])
    assert absent.content == asked("GET", f"/v1/receipts/{mine}", bearer=other).content


def test_a_namesake_from_another_issuer_is_another_person(
    asked: Asked, engine: Engine, home: Path, files: Path
) -> None:
    """A subject is unique only within its issuer (OpenID Connect Core, 2)."""
    seq = asked.post("ask", {"question": QUESTION}, bearer=token()).json()["record"]
    other = Service(engine, home, conftest.settings(files, issuer="https://other.example"))
    bearer = token(iss="https://other.example")
    assert 404 == Asked(application(other))("GET", f"/v1/receipts/{seq}", bearer=bearer).status_code
    other.close()


@pytest.mark.release
def test_any_proof_can_be_made_from_the_tiles(asked: Asked, engine: Engine) -> None:
    """Inclusion of every record, and consistency with every earlier log, from the fetched files alone."""
    for _ in range(600 - engine.log.size):
        engine.log.append(Recovery("DRILL"))
    bearer = token()
    note = asked("GET", "/log/checkpoint", bearer=bearer)
    assert "text/plain" == note.headers["content-type"].partition(";")[0]
    tree = Checkpoint.parse(Note.parse(note.text).text)
    assert 600 <= tree.size
    tiles: dict[tuple[int, int], bytes] = {}

    def node(level: int, n: int) -> bytes:
        """Compute the hash of a node within a tile from the hashes in the tile."""
        height, within = divmod(level, 8)
        if within:
            return merkle.node_hash(node(level - 1, 2 * n), node(level - 1, 2 * n + 1))
        number, place = divmod(n, TILE_WIDTH)
        if (height, number) not in tiles:
            width = min(TILE_WIDTH, (tree.size >> (8 * height)) - TILE_WIDTH * number)
            partial = "" if width == TILE_WIDTH else f".p/{width}"
            found = asked("GET", f"/log/tile/{height}/{number:03}{partial}", bearer=bearer)
            assert (200, 32 * width) == (found.status_code, len(found.content)), (height, number)
            assert "immutable" in found.headers["cache-control"]
            tiles[height, number] = found.content
        return tiles[height, number][32 * place : 32 * place + 32]

    for seq in range(tree.size):
        path = merkle.inclusion_proof(node, seq, tree.size)
        leaf = merkle.leaf_hash(engine.log.record(seq).to_bytes())
        merkle.verify_inclusion(leaf, seq, tree.size, path, tree.root)
    peaks = [node(level, n) for level, n in merkle.peak_positions(tree.size)]
    assert merkle.Frontier(tree.size, peaks).root() == tree.root
    assert {(0, 0), (0, 1), (0, 2)} <= set(tiles)


def test_the_records_themselves_go_only_to_auditors(asked: Asked, engine: Engine) -> None:
    """They say who asked when; each follows its length (c2sp.org/tlog-tiles)."""
    size = engine.log.size
    path = f"/log/tile/entries/000.p/{size}"
    for bearer, status, code in (
        (token(), 403, "TOKEN_DUTY"),
        (None, 401, "TOKEN_MISSING"),
        (token(groups=["auditors"], exp=1), 401, "TOKEN_EXPIRED"),
    ):
        answer = asked("GET", path, bearer=bearer)
        assert (status, code) == (answer.status_code, answer.json()["code"])
    data = asked("GET", path, bearer=token(groups=["auditors"])).content
    found = []
    while data:
        length = int.from_bytes(data[:2], "big")
        found.append(data[2 : 2 + length])
        data = data[2 + length :]
    assert [engine.log.record(seq).to_bytes() for seq in range(size)] == found


def test_a_duty_is_not_a_cell(asked: Asked, engine: Engine) -> None:
    """An auditor cannot ask, and a claim cannot add a duty."""
    answer = asked.post("ask", {"question": QUESTION}, bearer=token(groups=["auditors"]))
    assert (403, "TOKEN_CELL") == (answer.status_code, answer.json()["code"])
    duty = {"role": "duty:audit", "purpose": "duty:audit"}
    answer = asked.post("ask", {"question": QUESTION, **duty}, bearer=token(groups=["auditors"]))
    assert 403 == answer.status_code
    assert 403 == asked("GET", "/log/tile/entries/000.p/1", bearer=token(duties=["audit"])).status_code
    assert ["TOKEN_CELL", "TOKEN_DUTY"] == denials(engine)


def test_other_paths_than_those_of_tiles_are_not_found(asked: Asked) -> None:
    """Spelt differently, not full yet, or beyond the end."""
    paths = (
        "0/999 0/000 1/000 0/000.p/256 0/000.p/0 0/0 00/000 0/x000/001 -1/000 0/000.p/01 64/000 entries/00"
    )
    more = ["0/x999/x999/x999/x999/x999/999", "..%2f..%2faudit.key", ""]
    for path in [*paths.split(), *more]:
        assert 404 == asked("GET", f"/log/tile/{path}", bearer=token()).status_code, path


def test_the_log_needs_a_token_unless_it_is_public(engine: Engine, home: Path, files: Path) -> None:
    """Its size tells how much was asked."""
    service = Service(engine, home, conftest.settings(files, public_log=True))
    asked = Asked(application(service))
    tree = Checkpoint.parse(Note.parse(asked("GET", "/log/checkpoint").text).text)
    assert 200 == asked("GET", f"/log/tile/0/000.p/{tree.size}").status_code
    assert 401 == asked("GET", "/v1/receipts/1").status_code
    service.close()


@given(st.integers(-1, 63), st.integers(0, 10**12), st.integers(1, 256))
def test_each_tile_has_one_spelling(level: int, n: int, width: int) -> None:
    """By c2sp.org/tlog-tiles: groups of three digits, all but the last with an x."""
    digits = f"{n:0{-(-len(str(n)) // 3) * 3}}"
    groups = [digits[start : start + 3] for start in range(0, len(digits), 3)]
    height = "entries" if level == -1 else str(level)
    path = f"{height}/" + "/".join([*(f"x{one}" for one in groups[:-1]), groups[-1]])
    whole = path if width == TILE_WIDTH else f"{path}.p/{width}"
    assert Tile.parse(whole) == Tile(level, n, width)
    assert Tile.parse(f"{height}/x000/{groups[0]}") is None
    assert Tile.parse(whole + "/") is None


@given(
    st.text(max_size=30) | st.from_regex(r"[0-9]{1,2}/(x[0-9]{3}/)*[0-9]{3}(\.p/[0-9]{1,3})?", fullmatch=True)
)
def test_any_path_is_a_tile_or_not(path: str) -> None:
    """A tile's path can be derived from it."""
    found = Tile.parse(path)
    assert found is None or (
        found.width <= TILE_WIDTH and str(found.n) in path.replace("/x", "").replace("/", "")
    )


def test_the_policy_shows_what_a_token_grants(asked: Asked, service: Service) -> None:
    """And no other cells."""
    said = asked("GET", "/v1/policy", bearer=token(**OFFICER)).json()
    assert [("compliance", "surveil"), ("public", "public_qa")] == sorted(
        (one["role"], one["purpose"]) for one in said["cells"]
    )
    assert (service.grants.digest.hex(), service.engine.profile.table.sha256) == (
        said["grants"],
        said["table"],
    )
    assert json.dumps(said)
