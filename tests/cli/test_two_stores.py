"""Two stores on one machine: a firm's filings under ``edgar``, a bank's circulars under ``circulars``.

The same commands, receipts and verifiers serve both; what belongs to one opens nothing in the other.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from carag.cli import Exit
from carag.cli.app import run

ROOT: Final = Path(__file__).parents[2]
ROYALTY: Final = "What royalty rate does Lumenfield pay on net sales of LMF-204?"
LIMIT: Final = "What is the limit on the balance of a small wallet?"
TWO: Final = ("--actor", "Dora", "--approver", "Carl")


@dataclass(frozen=True)
class User:
    """Somebody with a store, a question, and the right to ask it."""

    name: str
    home: Path
    question: str
    role: str
    purpose: str
    says: str
    """What the answer holds."""

    @property
    def store(self) -> Path:
        return self.home / self.name

    @property
    def receipt(self) -> Path:
        return self.home / f"{self.name}.json"

    @property
    def key(self) -> Path:
        return self.store / "vkey"

    def asking(self, *more: object) -> tuple[object, ...]:
        return (
            "ask",
            self.question,
            "--store",
            self.store,
            "--role",
            self.role,
            "--purpose",
            self.purpose,
            *more,
        )


def carag(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """Return a command's exit code and all that it printed, as one line."""
    capsys.readouterr()
    code = run([str(word) for word in words])
    said = capsys.readouterr()
    return code, " ".join((said.out + said.err).replace("│", " ").split())


def as_json(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    capsys.readouterr()
    assert run([str(word) for word in words]) == Exit.OK
    lines = capsys.readouterr().out
    return (
        [json.loads(line) for line in lines.splitlines()]
        if words[:2] == ("audit", "list")
        else json.loads(lines)
    )


def bytes_of(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> tuple[User, User]:
    """Both stores, made and asked by the command line in one directory."""
    home = tmp_path_factory.mktemp("machine")
    filings = User("filings", home, ROYALTY, "buy_side", "invest", "between 4 percent and 8 percent")
    rules = User("rules", home, LIMIT, "branch", "operate", "20,000 crowns")
    (home / "edgar").mkdir()
    for path in (ROOT / "data" / "corpus").glob("9990000112-*"):
        shutil.copy(path, home / "edgar")
    shutil.copytree(ROOT / "data" / "circulars", home / "circulars")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        for user, profile in ((filings, "edgar"), (rules, "circulars")):
            made = ("--profile", profile, "--store", str(user.store), "--embedder", "wordllama")
            assert run(["init", *made]) == Exit.OK
            assert run(["ingest", str(home / profile), "--store", str(user.store)]) == Exit.OK
            assert run([str(word) for word in user.asking("--receipt", user.receipt)]) == Exit.OK
    return filings, rules


@pytest.fixture
def filings(users: tuple[User, User]) -> User:
    return users[0]


@pytest.fixture
def rules(users: tuple[User, User]) -> User:
    return users[1]


@pytest.fixture
def apart(users: tuple[User, User], tmp_path: Path) -> tuple[User, User]:
    """Copies of both, for what changes a store."""
    shutil.copytree(users[0].home, tmp_path, dirs_exist_ok=True)
    first, second = (User(one.name, tmp_path, one.question, one.role, one.purpose, one.says) for one in users)
    return first, second


# --- the same commands serve both ---


def test_each_answers_its_user_in_the_same_form(
    apart: tuple[User, User], capsys: pytest.CaptureFixture[str]
) -> None:
    answers = [as_json(capsys, *user.asking("--json")) for user in apart]
    for user, answer in zip(apart, answers, strict=True):
        assert (answer["outcome"], user.says in answer["text"]) == ("answer", True)
    assert answers[0].keys() == answers[1].keys()


def test_each_receipt_verifies_under_its_own_key_by_both_verifiers(
    users: tuple[User, User], capsys: pytest.CaptureFixture[str]
) -> None:
    for user in users:
        code, said = carag(capsys, "verify", user.receipt, "--key", user.key)
        assert (code, f"{user.role}, for {user.purpose}" in said, user.says in said) == (Exit.OK, True, True)
        assert by_script(user.receipt, user.key).returncode == 0


def test_a_receipt_of_one_does_not_verify_under_the_key_of_the_other(
    filings: User, rules: User, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not false but another log's, which both verifiers say."""
    for one, other in ((filings, rules), (rules, filings)):
        code, said = carag(capsys, "verify", one.receipt, "--key", other.key)
        log = other.key.read_text().split("+")[0]
        assert (code, f"not by {log}" in said, "verified" in said) == (Exit.CANNOT_TELL, True, False)
        done = by_script(one.receipt, other.key)
        assert (done.returncode, log in done.stdout) == (2, True)


def by_script(receipt: Path, key: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, ROOT / "scripts" / "verify_receipt.py", receipt, "--key", key]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_log_of_each_is_verified_listed_shown_and_proved(
    filings: User, rules: User, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for user, other in ((filings, rules), (rules, filings)):
        at = ("--store", user.store)
        assert carag(capsys, "audit", "verify", *at, "--key", user.key)[0] == Exit.OK
        code, said = carag(capsys, "audit", "verify", *at, "--key", other.key)
        assert (code, "give the key of that log" in said, "verified" in said) == (
            Exit.CANNOT_TELL,
            True,
            False,
        )
        (asked,) = [row for row in as_json(capsys, "audit", "list", *at, "--json") if row["kind"] == "query"]
        code, said = carag(capsys, "audit", "show", asked["record"], *at)
        assert (code, f"{user.role}" in said, "as the log signed it" in said) == (Exit.OK, True, True)
        proof = tmp_path / user.name
        assert carag(capsys, "audit", "prove", asked["record"], *at, "--out", proof)[0] == Exit.OK
        assert (proof / "vkey").read_text().strip() == user.key.read_text().strip()
        assert (
            carag(capsys, "audit", "prove", asked["record"], *at, "--out", proof, "--key", other.key)[0]
            != Exit.OK
        )


# --- what belongs to one opens nothing in the other ---


@pytest.mark.parametrize("erased", [0, 1])
def test_an_erasure_in_one_changes_no_byte_of_the_other(
    apart: tuple[User, User], erased: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """And both receipts verify as before."""
    mine, other = apart[erased], apart[1 - erased]
    before = bytes_of(other.store)
    (asked,) = [
        row
        for row in as_json(capsys, "audit", "list", "--store", mine.store, "--json")
        if row["kind"] == "query"
    ]
    done = (
        "audit",
        "erase",
        "--store",
        mine.store,
        "--record",
        asked["record"],
        "--basis",
        "GDPR_17_1_D",
        *TWO,
    )
    assert carag(capsys, *done)[0] == Exit.OK
    assert bytes_of(other.store) == before
    for user in apart:
        assert carag(capsys, "audit", "verify", "--store", user.store, "--key", user.key)[0] == Exit.OK
        assert carag(capsys, "verify", user.receipt, "--key", user.key)[0] == Exit.OK
        code, said = carag(capsys, "audit", "show", asked["record"], "--store", user.store)
        assert (code, "erased" in said) == (Exit.OK, user is mine)


def test_the_roles_of_one_are_refused_in_the_other_and_those_of_the_store_are_named(
    apart: tuple[User, User], capsys: pytest.CaptureFixture[str]
) -> None:
    """The refusal is on record where it was asked, and nowhere else."""
    for one, other, profile, roles in (
        (apart[0], apart[1], "circulars", "analyst, compliance, branch, public"),
        (apart[1], apart[0], "edgar", "sell_side, buy_side, compliance"),
    ):
        home = bytes_of(one.store)
        session = ("--store", other.store, "--role", one.role, "--purpose", one.purpose)
        code, said = carag(capsys, "ask", one.question, *session)
        assert (code, f"unknown role '{one.role}'; want one of {roles}" in said) == (Exit.REFUSED, True)
        assert f"is a store of the profile {profile}; carag policy show --store" in said
        last = as_json(capsys, "audit", "list", "--store", other.store, "--json")[0]
        assert last["code"] == "UNKNOWN_ROLE"
        assert bytes_of(one.store) == home


def test_a_role_that_both_know_sees_only_its_own_store(
    apart: tuple[User, User], capsys: pytest.CaptureFixture[str]
) -> None:
    """Compliance may know of everything, and in the other store there is nothing of the kind."""
    compliance = ("--role", "compliance", "--purpose", "surveil")
    for one, chunk in ((apart[1], "9990000112-23-000001:00001"), (apart[0], "wallets-2022.txt:00000")):
        code, said = carag(capsys, "explain", chunk, "--store", one.store, *compliance)
        assert (code, "there is nothing this session may know" in said) == (Exit.DECLINED, True)


def test_a_condition_on_metadata_of_the_other_is_refused_with_those_that_there_are(
    filings: User, rules: User, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = carag(capsys, *rules.asking("--where", "branch=10-K"))
    assert (code, "where asks for 'branch'; want one of" in said, "reference" in said) == (
        Exit.BAD_INPUT,
        True,
        True,
    )
    code, said = carag(capsys, *filings.asking("--where", "department=payments"))
    assert (code, "where asks for 'department'; want one of company, filed" in said) == (Exit.BAD_INPUT, True)


def test_the_profile_of_the_other_is_refused_and_changes_nothing(
    filings: User, rules: User, capsys: pytest.CaptureFixture[str]
) -> None:
    for one, other, profile in ((filings, "edgar", "circulars"), (rules, "circulars", "edgar")):
        before = bytes_of(one.store)
        code, said = carag(capsys, "ingest", one.home / profile, "--store", one.store, "--profile", profile)
        assert (code, f"the store's profile is '{other}'" in said) == (Exit.BAD_INPUT, True)
        assert "leave the profile out, or make a new store" in said
        assert bytes_of(one.store) == before


def test_documents_of_the_other_are_found_out(
    apart: tuple[User, User], capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not a filing is skipped, what has no date of issue is quarantined; each message says what to do."""
    filings, rules = apart
    own = "need their own store: carag init --profile NAME --store DIR"
    code, said = carag(capsys, "ingest", filings.home / "circulars", "--store", filings.store)
    assert (code, "the store's profile is edgar" in said, own in said) == (Exit.BAD_INPUT, True, True)
    code, said = carag(capsys, "ingest", rules.home / "edgar", "--store", rules.store)
    assert ("most of it is quarantined" in said, "whose profile is circulars" in said, own in said) == (
        True,
    ) * 3
    code, said = carag(capsys, "sync", filings.home / "circulars", "--store", filings.store)
    assert (code, "this store's profile reads filings" in said) == (Exit.BAD_INPUT, True)


def test_a_folder_of_which_little_is_quarantined_is_not_doubted_when_it_comes_again(
    apart: tuple[User, User], capsys: pytest.CaptureFixture[str]
) -> None:
    """The share counts all that the folder holds, not only what is new in it."""
    rules = apart[1]
    (rules.home / "circulars" / "undated.md").write_text("Limits are raised.")
    for _ in range(2):
        code, said = carag(capsys, "ingest", rules.home / "circulars", "--store", rules.store)
        assert (code, "quarantine" in said, "most of it" in said) == (Exit.OK, True, False)


def test_a_store_that_is_not_there_is_told_with_how_to_make_one(
    rules: User, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under a profile: without one it would be a store of filings."""
    session = ("--role", rules.role, "--purpose", rules.purpose)
    code, said = carag(capsys, "ask", LIMIT, "--store", tmp_path / "ruels", *session)
    assert (code, "does not hold a store; make one with: carag init --profile NAME" in said) == (
        Exit.BAD_INPUT,
        True,
    )
    assert not (tmp_path / "ruels").exists()
