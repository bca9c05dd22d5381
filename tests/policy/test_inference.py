"""From session to policy: the specified table, cell by cell, and default deny for everything else."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from importlib.resources import files

import pytest

from carag.errors import InvalidArgument, PolicyConflict, Refused
from carag.policy import Mask, Policy, PolicyTable, Session, SessionSource, as_of_minutes, from_minutes, infer
from carag.policy.time import known_at_microseconds

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TEXT = files("carag").joinpath("profiles/edgar/roles.toml").read_text()
TABLE = PolicyTable.from_toml(TEXT)

# The masks of the specification's role x purpose table.
SPECIFIED = {
    ("sell_side", "publish"): 0x019C100,
    ("buy_side", "invest"): 0x0194000,
    ("compliance", "surveil"): 0x0004000,
    ("auditor", "assure"): 0x0014080,
    ("retail_adviser", "advise"): 0x2F9EB80,
    ("counsel", "draft"): 0x0004000,
    ("counsel", "surveil"): 0x0004000,
    ("public", "public_qa"): 0x019F900,
}
DSAR = Policy(*(Mask(required, 0x10000) for required in (0x800, 0x1000, 0x2000, 0x4000)))


@pytest.mark.parametrize(("cell", "forbidden"), SPECIFIED.items())
def test_each_cell_has_the_specified_mask(cell: tuple[str, str], forbidden: int) -> None:
    """The masks are those of the specification, bit for bit."""
    role, purpose = cell
    assert Policy(Mask(0, forbidden)) == infer(Session(role=role, purpose=purpose), TABLE, now=NOW).policy


@pytest.mark.parametrize("role", ["dpo", "counsel"])
def test_dsar_cells_refuse_a_session_without_an_allow_list(role: str) -> None:
    """A request for access concerns one person's data."""
    cell = TABLE.get(role, "dsar")
    assert cell is not None
    assert cell.policy == DSAR
    with pytest.raises(Refused, match="allow-list") as refusal:
        infer(Session(role=role, purpose="dsar"), TABLE, now=NOW)
    assert refusal.value.code == "ALLOW_LIST_REQUIRED"


def test_every_pair_outside_the_table_is_refused() -> None:
    """Over the whole grid of known roles and purposes, cells not in the table are denied."""
    for role in TABLE.roles:
        for purpose in TABLE.purposes:
            if TABLE.get(role, purpose) is None:
                with pytest.raises(Refused) as refusal:
                    infer(Session(role=role, purpose=purpose), TABLE, now=NOW)
                assert refusal.value.code == "NO_SUCH_CELL"
                others = [cell.purpose for cell in TABLE.cells if cell.role == role]
                assert str(refusal.value).endswith(f"this role may ask for {', '.join(others)}")


def test_a_decision_is_that_of_its_cell_and_of_the_instants_asked() -> None:
    """Role, purpose, regulation, knowledge of existence, instants and table come from nowhere else."""
    before = NOW - timedelta(days=1)
    for cell in TABLE.cells:
        allow = frozenset({7}) if cell.allow_list == "mandatory" else None
        past = {name: before for name in ("as_of", "known_at") if name in cell.past}
        session = Session(role=cell.role, purpose=cell.purpose, allow_entities=allow, **past)
        found = infer(session, TABLE, now=NOW)
        assert (cell.role, cell.purpose, cell.regulation) == (found.role, found.purpose, found.regulation)
        assert cell.may_know_existence is found.may_know_existence
        assert TABLE.sha256 == found.table_sha256
        assert found == infer(session, TABLE, now=NOW)
        assert as_of_minutes(past.get("as_of", NOW)) == found.as_of
        assert (known_at_microseconds(before) if "known_at" in past else None) == found.known_at


@pytest.mark.parametrize(
    ("role", "purpose", "code"),
    [
        ("wizard", "invest", "UNKNOWN_ROLE"),
        ("BUY_SIDE", "invest", "UNKNOWN_ROLE"),
        ("buy_side", "Invest", "UNKNOWN_PURPOSE"),
    ],
)
def test_unknown_names_are_refused_by_code(role: str, purpose: str, code: str) -> None:
    """An unknown name never widens anything, and names are case-sensitive."""
    with pytest.raises(Refused, match="want one of") as refusal:
        infer(Session(role=role, purpose=purpose), TABLE, now=NOW)
    assert code == refusal.value.code


def test_an_instant_in_the_future_is_now() -> None:
    """A session's as_of can only go back, so that an embargo holds."""
    ahead = Session(role="buy_side", purpose="invest", as_of=NOW + timedelta(days=1))
    assert as_of_minutes(NOW) == infer(ahead, TABLE, now=NOW).as_of
    behind = Session(role="buy_side", purpose="invest", as_of=NOW - timedelta(days=1))
    assert as_of_minutes(NOW) - 24 * 60 == infer(behind, TABLE, now=NOW).as_of


def test_a_plain_session_is_asserted() -> None:
    """Only a verifier can make it verified."""
    assert Session(role="a", purpose="b").source is SessionSource.ASSERTED
    with pytest.raises(TypeError, match="source"):
        Session(role="a", purpose="b", source=SessionSource.VERIFIED)  # type: ignore[call-arg]


def test_a_date_means_the_end_of_that_day_eastern() -> None:
    """23:59 in New York: -4 h in summer, -5 h in winter."""
    assert datetime(2025, 7, 2, 3, 59, tzinfo=UTC) == from_minutes(as_of_minutes(date(2025, 7, 1)))
    assert datetime(2025, 1, 2, 4, 59, tzinfo=UTC) == from_minutes(as_of_minutes(date(2025, 1, 1)))


def test_an_aware_datetime_keeps_its_instant_rounded_down() -> None:
    """Its zone does not matter."""
    india = datetime(2025, 1, 1, 12, 0, 59, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert datetime(2025, 1, 1, 6, 30, tzinfo=UTC) == from_minutes(as_of_minutes(india))


@pytest.mark.parametrize("as_of", [datetime(2025, 1, 1), date(1960, 1, 1), "2025-01-01", 5])  # noqa: DTZ001
def test_ambiguous_times_are_refused_when_the_session_is_made(as_of: object) -> None:
    """A naive datetime could be off by a filing day."""
    with pytest.raises(InvalidArgument):
        Session(role="buy_side", purpose="invest", as_of=as_of)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", ["", None, 7, "r" * 201, "two\nlines", "\ud800"])
def test_role_and_purpose_are_text(bad: object) -> None:
    """1 to 200 printable characters; an empty role is a programming error, not a refusal."""
    with pytest.raises(InvalidArgument, match="want 1 to 200 printable"):
        Session(role=bad, purpose="invest")  # type: ignore[arg-type]


CELL = '[[cell]]\nrole = "r"\npurpose = "p"\nregulation = "x"\nmay_know_existence = false\npast = "none"\n'


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("schema = 1\n" + CELL + 'masks = [{ forbiden = ["J_US"] }]', "forbiden"),
        ("schema = 1\n" + CELL + 'masks = [{ forbidden = ["J_MARS"] }]', "J_MARS"),
        ("schema = 1\n" + CELL + "masks = []", "masks"),
        ("schema = 3\n" + CELL + "masks = [{}]", "schema"),
        (CELL + "masks = [{}]", "schema"),
        ("schema = 1\n" + CELL, "masks"),
        ("schema = 1\n" + CELL + 'masks = [{}]\nallow_list = "maybe"', "allow_list"),
        ("schema = 1\n" + CELL.replace('past = "none"\n', "") + "masks = [{}]", "past"),
        ("schema = 1\n" + CELL.replace("none", "known_at") + "masks = [{}]", "past"),
        ("schema = 2\n" + CELL + "masks = [{}]", "schema"),
        ("schema = 1\n" + 2 * (CELL + "masks = [{}]\n"), "r/p"),
        ("schema = 1\n" + CELL + 'masks = [{ when = "always" }]', "when"),
        ("schema = 1\n" + CELL + 'masks = [{ when = "not_participating" }]', "has only masks with `when`"),
        ("schema = 1\n" + CELL + 'masks = [{}, { when = "not_participating" }]', "overlaps"),
        ('schema = 1\nroles = ["q"]\n' + CELL + "masks = [{}]", "line 4: cell 1 role: .r. is not declared"),
        (
            'schema = 1\npurposes = ["q"]\n' + CELL + "masks = [{}]",
            "line 5: cell 1 purpose: .p. is not declared",
        ),
        ("schema = 1\n[[cell", "end of document"),
        ("", "schema"),
    ],
)
def test_a_typing_error_in_the_table_is_refused(text: str, names: str) -> None:
    """For an unknown key, bit or version, a duplicate cell or no mask, the message names the place."""
    with pytest.raises(InvalidArgument, match=names):
        PolicyTable.from_toml(text)


def test_a_conflict_in_the_table_is_refused() -> None:
    """A pair that can admit nothing, by mistake, is not loaded."""
    text = "schema = 1\n" + CELL + 'masks = [{ required = ["EGC"], forbidden = ["EGC"] }]'
    with pytest.raises((InvalidArgument, PolicyConflict), match="EGC"):
        PolicyTable.from_toml(text)


def test_the_digest_follows_the_text() -> None:
    """Even a comment is a change of the reviewed data."""
    assert TABLE.sha256 != PolicyTable.from_toml(TEXT + "# reviewed again\n").sha256
