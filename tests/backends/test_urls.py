"""Backends by URL: several URLs name shards; ambiguous ones are refused, and no secret is shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carag.audit import Verdict, verify_receipt
from carag.backends import backend_by_url
from carag.cli import Exit
from carag.cli.app import run
from carag.engine.rows.moving import copy_backend, switch_backend
from carag.errors import BackendUnavailable, InvalidArgument
from tests.backends.conftest import NUMBERS
from tests.engine.documents import document
from tests.engine.test_backend import READER, REVIEW, filled, found, opened
from tests.loaded import loaded

if TYPE_CHECKING:
    from tests.postgres import Database

script = loaded(Path(__file__).parents[2] / "scripts" / "verify_receipt.py", "scripts.verify_receipt")


@pytest.fixture
def collection() -> str:
    return f"urls{next(NUMBERS)}"


def by_url(servers: list[Database], collection: str) -> str:
    return " ".join(f"{one.url}&collection={collection}" for one in servers)


# -- a store in shards


def test_a_store_in_shards_answers_as_natively(
    tmp_path: Path, servers: list[Database], collection: str
) -> None:
    """Equal passages and similarities to the last bit, also after reopening; all shards have rows; receipts verify."""
    url = by_url(servers[:3], collection)
    with opened(tmp_path / "here") as here, opened(tmp_path / "there", url) as there:
        for engine in (here, there):
            filled(engine, 20)
            engine.add([document(0, text="Branches report on another day.")])
            engine.remove(["d/3"])
        truth = [found(here, session) for session in (REVIEW, READER)]
        assert all(truth)
        assert truth == [found(there, session) for session in (REVIEW, READER)]
        receipt = there.retrieve("When do branches report?", READER).receipt
        vkey = there.vkey
    with opened(tmp_path / "there", url.replace(" ", "\n")) as there:
        there._collection.check()
        assert truth == [found(there, session) for session in (REVIEW, READER)]
        state = there._collection.index.state()
        assert 3 == sum(shard.rows > 0 for shard in state.shards)
    assert (collection, 3) == (state.collection, len(state.shards))
    whole = receipt.to_bytes()
    assert Verdict.VERIFIED is verify_receipt(whole, vkey).verdict
    assert Verdict.FAILED is verify_receipt(whole.replace(b"sharded 3", b"sharded 4"), vkey).verdict
    (tmp_path / "receipt.json").write_bytes(whole)
    assert 0 == script.main([str(tmp_path / "receipt.json"), "--key", vkey])


def test_a_store_moves_from_one_server_to_shards_and_back(
    tmp_path: Path, servers: list[Database], collection: str
) -> None:
    """It is copied, compared and switched; the note names the place, and another one is refused."""
    home, single = tmp_path / "store", f"{servers[0].url}&collection={collection}single"
    shards = by_url(servers[:2], collection)
    with opened(home, single) as engine:
        filled(engine)
        truth = found(engine, REVIEW)
    copied = copy_backend(home, single, shards)
    assert copied == switch_backend(home, shards)
    with opened(home, shards) as engine:
        assert truth == found(engine, REVIEW)
    for other in (single, f"{servers[0].url}&collection={collection}"):
        with pytest.raises(InvalidArgument, match=f"are in sharded, collection {collection}, and postgresql"):
            opened(home, other)
    with pytest.raises(InvalidArgument, match=f"are in sharded, collection {collection}; name it"):
        opened(home)
    assert copied.root == copy_backend(home, shards, single).root
    switch_backend(home, single)
    with opened(home, single) as engine:
        assert truth == found(engine, REVIEW)


def test_a_command_takes_shards_from_its_file(
    tmp_path: Path, servers: list[Database], collection: str, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """One per line, in a string with three quotes."""
    monkeypatch.chdir(tmp_path)
    lines = by_url(servers[:2], collection).replace(" ", "\n")
    Path("carag.toml").write_text(f'schema = 1\nstore = "store"\nbackend = """\n{lines}\n"""\n')
    with opened(tmp_path / "store", lines) as engine:
        filled(engine)
    assert Exit.OK == run(["upgrade", "--json"])
    assert '"rows": 12' in capsys.readouterr().out


# -- what is refused


def test_shards_in_another_order_are_refused(
    tmp_path: Path, servers: list[Database], collection: str
) -> None:
    """Also if another server would keep the epochs, with and without rows; nothing is moved."""
    one, two, three = servers[:3]
    with opened(tmp_path / "store", by_url([one, two, three], collection)) as engine:
        filled(engine)
        before = found(engine, REVIEW)
    for order, why in (
        ([one, three, two], "in another order"),
        ([one, two], "these 2 shards are not the 3"),
        ([two, one, three], "no epoch covers"),
        ([three, two, one], "no epoch covers"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            opened(tmp_path / "store", by_url(order, collection))
    with opened(tmp_path / "store", by_url([one, two, three], collection)) as engine:
        assert before == found(engine, REVIEW)


def test_one_database_is_one_shard(servers: list[Database], collection: str) -> None:
    """A second name of the same database is noticed, whatever the address."""
    url = by_url(servers[:1], collection)
    for twice in (url, f"{url}&application_name=other"):
        with pytest.raises(InvalidArgument, match="shards 0 and 1 are the same database"):
            backend_by_url(f"{url} {twice}")


@pytest.mark.parametrize(
    ("urls", "said"),
    [
        (
            "postgresql://me:hush@one/v redis://me:hush@two/v",
            "shard 1 of 2 does not begin with postgresql://",
        ),
        ("postgresql://me:hush@one/v postgresql://me:hush@two/v hush", "shard 2 of 3 does not begin with"),
        ("native postgresql://me:hush@one/v", "shard 0 of 2 does not begin with"),
        (
            "postgresql://me:hush@one/v?collection=a postgresql://me:hush@two/v?collection=b",
            "collections 'a', 'b'; use one name in all",
        ),
        ("postgresql://me:hush@one/v?collection=a postgresql://me:hush@two/v", "collections 'a', 'carag'"),
        ("postgresql://me:hush@one/v?nothing=1 postgresql://two/v", "shard 0 of 2: this is not the address"),
        ("postgresql://me:hush@one/v, postgresql://me:hush@two/v", "remove the commas"),
        ("postgresql://me:hush@one/v,postgresql://me:hush@two/v", "remove the commas"),
    ],
)
def test_urls_that_are_not_shards_are_refused_without_their_secret(urls: str, said: str) -> None:
    """Before a server is asked; the message gives the number of the wrong one."""
    with pytest.raises(InvalidArgument, match=said) as error:
        backend_by_url(urls)
    assert "hush" not in str(error.value)


def test_an_unreachable_shard_is_named_by_its_number(servers: list[Database], tmp_path: Path) -> None:
    """Without its address, account or password."""
    away = f"postgresql://me:hush@/v?host={tmp_path}"
    with pytest.raises(BackendUnavailable, match="shard 1 of 2: PostgreSQL did not answer") as error:
        backend_by_url(f"{servers[0].url} {away}")
    assert not any(secret in str(error.value) for secret in ("hush", str(tmp_path)))
