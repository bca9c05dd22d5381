"""Draw whole profiles, documents and sessions from a seed, and say by plain Python what a session may find.

A generator with a seed, and not Hypothesis: a store is asked a hundred questions, and to draw each of 100,000 by
Hypothesis takes longer than to answer it. A failure names its seed, which draws the same again.

``admissible`` is the other opinion: it reads the parsed TOML and the documents as they were drawn, and nothing of
``carag``. Not drawn: deals, wall-crossings, legal bases, cooling times and the past that a store knew.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from random import Random


NOW: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)
ZONES: Final = ["UTC", "Europe/Vienna", "America/New_York", "Asia/Kathmandu", "Pacific/Kiritimati"]
WORDS: Final = ["harvest", "ledger", "orchard", "quarry", "audited", "latest", "amended", "released"]
FIELDS: Final = {
    "one_of": "category", "equals": "status", "contains": "topics", "is_true": "sealed", "at_least": "pages",
}  # fmt: skip
VALUES: Final = ["red", "green", "blue", "Amber"]


@dataclass
class Paper:
    """A document as it was drawn."""

    id: str
    given: dict[str, Any]
    """What :class:`carag.Document` takes besides id and text."""
    is_quarantined: bool = False
    """Whether its facts were drawn with a slip."""


@dataclass
class Asked:
    """A question and the session that asks it, as plain values."""

    question: str
    role: str
    purpose: str
    as_of: datetime | date | None = None
    restricted: frozenset[int] = frozenset()
    allowed: frozenset[int] | None = None
    barred: frozenset[str] = frozenset()
    """Names of jurisdictions."""
    has_no_transfer_basis: bool = False
    k: int = 400


@dataclass
class Drawn:
    """A profile as two texts, and as the mappings that they are."""

    texts: tuple[str, str]
    said: dict[str, Any] = field(init=False)
    cells: dict[tuple[str, str], dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.said, roles = map(tomllib.loads, self.texts)
        self.cells = {(cell["role"], cell["purpose"]): cell for cell in roles["cell"]}


def some(rng: Random, of: list[Any], most: int = 99) -> list[Any]:
    return rng.sample(of, rng.randint(0, min(most, len(of))))


def written(tables: dict[str, Any]) -> str:
    """Write plain values as TOML: except for tables, JSON is TOML."""

    def value(one: Any) -> str:
        if isinstance(one, dict):
            return "{ " + ", ".join(f"{key} = {value(of)}" for key, of in one.items()) + " }"
        return f"[{', '.join(map(value, one))}]" if isinstance(one, list) else json.dumps(one)

    lines = [
        f"{key} = {value(one)}" for key, one in tables.items() if not (isinstance(one, list) and key in LISTS)
    ]
    for key in LISTS:
        for one in tables.get(key, ()):
            lines += [f"[[{key}]]", *(f"{name} = {value(of)}" for name, of in one.items())]
    return "\n".join(lines) + "\n"


LISTS: Final = ("bit", "impossible", "required", "rule", "intent", "cell")


def _rule(rng: Random, bits: list[str]) -> dict[str, Any]:
    operator = rng.choice([*FIELDS, "at_most"])
    wanted: dict[str, Any] = {
        "one_of": rng.sample(VALUES, 2),
        "at_least": rng.randint(3, 9),
        "at_most": rng.randint(3, 9),
    }
    known = {} if operator == "is_true" else {"value": wanted.get(operator, rng.choice(VALUES))}
    named = FIELDS.get(operator, "pages")
    return {"bit": rng.choice(bits), "field": named, "operator": operator, **known, "regulation": "r"}


def profile(rng: Random) -> Drawn:
    """Draw a profile: 1 to 27 bits, and everything that a profile may state about them."""
    count = rng.choice([1, 2, 6, 27, rng.randint(1, 27)])
    bits = [f"{rng.choice('ABXYZ')}{rng.choice(['', '_', '7'])}{number}" for number in range(count)]
    purposes = [f"purpose_{one}" for one in "abc"[: rng.randint(1, 3)]]
    roles = [f"role_{one}" for one in "abc"[: rng.randint(1, 3)]]

    def mask(most: int = 3) -> dict[str, list[str]]:
        chosen = some(rng, bits, most)
        cut = rng.choice([0, 0, rng.randint(0, len(chosen))])
        return {"required": chosen[:cut], "forbidden": chosen[cut:]}

    intents = [
        {"name": f"I_{word.upper()}", **one, "phrases": [rf"\b{word}\b"]}
        | rng.choice([{}, {"unless": "personal_data"}, {"case_matters": True}])
        for word in some(rng, WORDS, 3)
        if (one := mask(2))["required"] or one["forbidden"]
    ]
    said = {
        "schema": 1,
        "name": "drawn",
        "time_zone": rng.choice(ZONES),
        "groups": {
            name: some(rng, bits, 4)
            for name in some(rng, ["jurisdictions", "personal", "transfer", "cooling"])
        },
        "purposes": {"access_request": some(rng, purposes, 1)},
        "bit": [{"name": name, "document": f"papers {name}", "regulation": "r"} for name in bits],
        "impossible": [one for _ in range(2) if (one := mask())["required"] or one["forbidden"]],
        "required": rng.choice([[], [{"field": "category", "one_of": VALUES}]]),
        "rule": [_rule(rng, bits) for _ in range(rng.choice([0, 3, 8]))],
        "intent": intents,
    }
    cells = [
        {
            "role": role,
            "purpose": purpose,
            "regulation": "r",
            "may_know_existence": rng.random() < 0.5,
            "past": rng.choice(["none", "as_of", "as_of+known_at"]),
            "personal_data": rng.random() < 0.5,
            "allow_list": rng.choice(["none", "none", "none", "mandatory"]),
            "masks": [mask() for _ in range(rng.randint(1, 3))],
        }
        for role in roles
        for purpose in purposes
        if rng.random() < 0.8
    ]
    if not cells:
        kept = {"role": roles[0], "purpose": purposes[0], "regulation": "r", "masks": [mask()]}
        cells = [kept | {"may_know_existence": True, "past": "as_of"}]
    table = {"schema": 1, "roles": roles, "purposes": purposes, "cell": cells}
    return Drawn((written(said), written(table)))  # fmt: skip


def papers(rng: Random, drawn: Drawn, count: int) -> list[Paper]:
    """Draw documents: facts or bits, windows of instants or days, entities, and what each supersedes."""
    said, found = drawn.said, []
    rules, needed = said.get("rule", []), said.get("required", [])
    for number in range(count):
        given: dict[str, Any] = {"entities": frozenset(some(rng, [1, 2, 3, 4], 2))}
        slip = ""
        if rules and rng.random() < 0.8:
            facts = {one["field"]: rng.choice([str.upper, str])(rng.choice(one["one_of"])) for one in needed}
            for rule in rules:
                if rng.random() < 0.6:
                    facts.setdefault(rule["field"], _stated(rng, rule))
            slip = _slip(rng, facts, rules, needed) if rng.random() < 0.15 else ""
            given["facts"] = facts
        else:
            given["bits"] = tuple(some(rng, [one["name"] for one in said["bit"]], rng.choice([1, 2, 9])))
        start = rng.choice([None, None, NOW + timedelta(minutes=rng.randint(-90_000, 9_000))])
        given["public_at"] = start.date() if start and rng.random() < 0.5 else start
        if rng.random() < 0.4:
            end = (start or NOW - timedelta(days=30)) + timedelta(days=2, minutes=rng.randint(0, 60_000))
            given["expires_at"] = end.date() if rng.random() < 0.5 else end
        if number and rng.random() < 0.2:
            given["supersedes"] = rng.choice(found).id
        found.append(Paper(f"d/{number}", given, bool(slip)))
    return found


def _stated(rng: Random, rule: dict[str, Any]) -> Any:
    match rule["operator"]:
        case "is_true":
            return rng.choice([True, False, "yes", "No", "1", 0])
        case "at_least" | "at_most":
            return rng.choice([rule["value"], rule["value"] + 1, str(rule["value"] - 1), 0.5])
        case "contains":
            return some(rng, [*VALUES, rule["value"]], 3)
        case "one_of":
            return rng.choice([*rule["value"], "other"])
    return rng.choice([rule["value"], "other"])


def _slip(rng: Random, facts: dict[str, Any], rules: list[Any], needed: list[Any]) -> str:
    """Spoil the facts of a document, so that no label can be made of them."""
    slips: list[tuple[str, Any]] = [(f"{rule['field']}{rule['field'][-1]}", "x") for rule in rules[:1]]
    for one in needed:
        slips += [(one["field"], None), (one["field"], "no such value")]
    slips += [
        (rule["field"], "perhaps") for rule in rules if rule["operator"] in ("is_true", "at_least", "at_most")
    ]
    slips += [(rule["field"], "nan") for rule in rules if rule["operator"] in ("at_least", "at_most")]
    name, value = rng.choice(slips)
    facts[name] = value
    return name


def ask(rng: Random, drawn: Drawn) -> Asked:
    """Draw a question and its session: mostly of a cell, sometimes of none."""
    role, purpose = rng.choice(list(drawn.cells))
    match rng.randint(0, 19):
        case 0:
            role = "role_unknown"
        case 1:
            purpose = "purpose_unknown"
        case 2:
            role, purpose = rng.choice(list(drawn.cells))[0], rng.choice(list(drawn.cells))[1]
    groups = drawn.said.get("groups", {})
    moment = NOW + timedelta(minutes=rng.randint(-60_000, 3_000))
    return Asked(
        f"What of the {rng.choice(WORDS)}, and the {rng.choice(WORDS).title()}?",
        role,
        purpose,
        as_of=rng.choice([None, None, moment, moment.date()]),
        restricted=frozenset(some(rng, [1, 2, 3, 4], rng.choice([0, 0, 2]))),
        allowed=frozenset(some(rng, [1, 2, 3, 4])) if rng.random() < 0.3 else None,
        barred=frozenset(some(rng, groups.get("jurisdictions", []), rng.choice([0, 0, 2]))),
        has_no_transfer_basis=rng.random() < 0.1,
        k=rng.choice([1, 2, 5, 400]),
    )


# -- the other opinion: what a session may find, or None where it is refused


def admissible(drawn: Drawn, kept: list[Paper], removed: set[str], asked: Asked) -> set[str] | None:
    """Return the ids of all documents that may be found, by the profile and the documents as written."""
    said, cell, now = drawn.said, drawn.cells.get((asked.role, asked.purpose)), _minute(NOW, None)
    zone, groups = ZoneInfo(said.get("time_zone", "UTC")), said.get("groups", {})
    moment = now if asked.as_of is None else min(now, _minute(asked.as_of, zone))
    if cell is None or (cell.get("allow_list") == "mandatory" and not asked.allowed):
        return None
    if moment < now and cell["past"] == "none":
        return None
    masks = [
        (set(one.get("required", ())), set(one.get("forbidden", ())))
        for one in cell["masks"]
        if "when" not in one
    ]
    more = [(set(), set(asked.barred))] + [
        (set(one.get("required", ())), set(one.get("forbidden", ())))
        for one in _meant(said, cell, asked.question)
    ]
    masks = [(must.union(*(m for m, _ in more)), never.union(*(n for _, n in more))) for must, never in masks]
    abroad, personal = set(groups.get("transfer", ())), set(groups.get("personal", ()))
    if any(must & never for must, never in masks):
        return None
    if asked.has_no_transfer_basis:
        halves = [[half for half in (abroad, personal) if not must & half] for must, _ in masks]
        if not abroad or not personal or not all(halves) or sum(map(len, halves)) > 8:
            return None
    ends = {one.id: _minute(one.given.get("expires_at"), zone, 1 << 40) for one in kept}
    for one in kept:
        if old := one.given.get("supersedes"):
            ends[old] = min(ends[old], _minute(one.given["public_at"], zone, 0))
    return {
        one.id
        for one in kept
        if one.id not in removed
        and not one.is_quarantined
        and _minute(one.given["public_at"], zone, 0) <= moment < ends[one.id]
        and _about(
            asked, one.given["entities"], asked.purpose in said.get("purposes", {}).get("access_request", ())
        )
        and any(must <= (bits := _bits(said, one.given)) and not never & bits for must, never in masks)
        and not (asked.has_no_transfer_basis and abroad & bits and personal & bits)
    }


def _about(asked: Asked, entities: frozenset[int], is_access: bool) -> bool:
    if asked.restricted and (not entities or entities & asked.restricted):
        return False
    if asked.allowed is None:
        return True
    return bool(entities & asked.allowed) if is_access else bool(entities) and entities <= asked.allowed


def _meant(said: dict[str, Any], cell: dict[str, Any], question: str) -> list[dict[str, Any]]:
    for phrase in said.get("intents", {}).get("not_meant", ()):
        question = re.sub(phrase, " ", question, flags=re.IGNORECASE)
    return [
        one
        for one in said.get("intent", ())
        if not cell.get(one.get("unless", ""), False)
        and any(
            re.search(p, question, 0 if one.get("case_matters") else re.IGNORECASE) for p in one["phrases"]
        )
    ]


def _bits(said: dict[str, Any], given: dict[str, Any]) -> set[str]:
    if "bits" in given:
        return set(given["bits"])
    return {rule["bit"] for rule in said["rule"] if _holds(rule, given["facts"])}


def _holds(rule: dict[str, Any], facts: dict[str, Any]) -> bool:
    stated, wanted = facts.get(rule["field"], []), rule.get("value")
    several = [str(one).lower() for one in (stated if isinstance(stated, list) else [stated])]
    if rule["operator"] == "is_true":
        return several in (["true"], ["yes"], ["1"])
    if rule["operator"] in ("at_least", "at_most"):
        sign = 1 if rule["operator"] == "at_least" else -1
        return bool(several) and sign * float(several[0]) >= sign * wanted
    return any(str(one).lower() in several for one in (wanted if isinstance(wanted, list) else [wanted]))


def _minute(moment: datetime | date | None, zone: ZoneInfo | None, absent: int = 0) -> int:
    if moment is None:
        return absent
    if not isinstance(moment, datetime):  # the last minute of the day
        moment = datetime.combine(moment, time(23, 59), tzinfo=zone)
    return int(moment.timestamp() // 60)
