"""Backends by URL: a store is opened, moved and asked by addresses; wrong ones are refused, and no secret is shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carag.audit import Verdict, verify_receipt
from carag.backends import backend_by_url
from carag.engine.migration import copy_backend, switch_backend
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


def test_a_store_on_a_server_answers_as_natively(
    tmp_path: Path, servers: list[Database], collection: str
) -> None:
    """Equal passages and similarities to the last bit, also after reopening; receipts verify."""
    url = f"{servers[0].url}&collection={collection}"
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
    with opened(tmp_path / "there", url) as there:
        there._collection.check()
        assert truth == [found(there, session) for session in (REVIEW, READER)]
    whole = receipt.to_bytes()
    assert Verdict.VERIFIED is verify_receipt(whole, vkey).verdict
    assert Verdict.FAILED is verify_receipt(whole.replace(b'"postgresql ', b'"postgresqm '), vkey).verdict
    (tmp_path / "receipt.json").write_bytes(whole)
    assert 0 == script.main([str(tmp_path / "receipt.json"), "--key", vkey])


def test_a_store_moves_from_one_server_to_another_and_back(
    tmp_path: Path, servers: list[Database], collection: str
) -> None:
    """It is copied, compared and switched; the note names the place, and another one is refused."""
    home = tmp_path / "store"
    single, other = (f"{one.url}&collection={collection}{n}" for n, one in enumerate(servers[:2]))
    with opened(home, single) as engine:
        filled(engine)
        truth = found(engine, REVIEW)
    copied = copy_backend(home, single, other)
    assert copied == switch_backend(home, other)
    with opened(home, other) as engine:
        assert truth == found(engine, REVIEW)
    with pytest.raises(InvalidArgument, match=f"are in postgresql, collection {collection}1, and postgresql"):
        opened(home, single)
    with pytest.raises(
        InvalidArgument, match=f"are in postgresql, collection {collection}1; name that backend"
    ):
        opened(home)
    assert copied.root == copy_backend(home, other, single).root
    switch_backend(home, single)
    with opened(home, single) as engine:
        assert truth == found(engine, REVIEW)


# -- what is refused


@pytest.mark.parametrize(
    ("urls", "said"),
    [
        ("postgresql://me:hush@one/v redis://me:hush@two/v", "there are 2 addresses"),
        ("postgresql://me:hush@one/v postgresql://me:hush@two/v hush", "there are 2 addresses"),
        ("postgresql://me:hush@one/v,postgresql://me:hush@two/v", "there are 2 addresses"),
        ("native postgresql://me:hush@one/v", "there is no backend"),
        ("me:hush@one/v", "of this name"),
        ("postgresql://me:hush@one/v?nothing=1", "this is not the address"),
    ],
)
def test_wrong_addresses_are_refused_without_their_secret(urls: str, said: str) -> None:
    """Before a server is asked."""
    with pytest.raises(InvalidArgument, match=said) as error:
        backend_by_url(urls)
    assert "hush" not in str(error.value)


def test_an_unreachable_server_is_told_without_its_address(tmp_path: Path) -> None:
    """Nor its account or password."""
    with pytest.raises(BackendUnavailable, match="PostgreSQL did not answer") as error:
        backend_by_url(f"postgresql://me:hush@/v?host={tmp_path}")
    assert not any(secret in str(error.value) for secret in ("hush", str(tmp_path)))
