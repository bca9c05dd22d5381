"""Malformed profiles: one slip each, made in the profiles that ship and in that of the documentation.

A slip is a pattern in one of the two files and what is written in its place.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from carag.policy.shipped import SHIPPED, shipped_text

if TYPE_CHECKING:
    from collections.abc import Iterator


FILES: Final = ("profile.toml", "roles.toml")
_PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-policy.md"
_PLANNING: Final = tuple(
    re.search(rf"cat > planning/{file} <<'END'\n(.*?)^END$", _PAGE.read_text("utf-8"), re.S | re.M)[1]  # type: ignore[index]
    for file in FILES
)
BASES: Final = {name: tuple(shipped_text(name, file) for file in FILES) for name in SHIPPED} | {
    "planning": _PLANNING
}
"""The two texts of each profile that is mutated."""


class Slip(NamedTuple):
    """A way to make a profile malformed."""

    pattern: str
    """Found at the starts and within the lines of one file."""
    written: str
    is_near: bool = True
    """Whether the slip itself is refused; else something that it contradicts, in the same file or the other."""
    but: str = ""
    """A profile in which this is correct."""


class Mutant(NamedTuple):
    """A malformed profile."""

    slip: str
    base: str
    file: str
    texts: tuple[str, str]
    lines: frozenset[int]
    """Where a refusal may point: to what was mutated, or to the table, mask or list that holds it."""


_LONG: Final = "x" * 1001
_BIT: Final = '[[bit]]\nname = "B{}"\ndocument = "d"\nregulation = "r"\n'
_INTENT: Final = '[[intent]]\nname = "FINAL"\n'
_END: Final = r"\Z"
_FIRST: Final = r"^(?=\[)"
_STRINGS: Final = r"^(name|document|regulation|field|bit|time_zone|operator) = .*"
_RULE: Final = '[[rule]]\nbit = "{}"\nfield = "pages"\nregulation = "r"\n'

_READER: Final = r'^(?:reader = "\w+"|(?=schema = 1)(?![\s\S]*^reader = ))'
"""Where a profile names its reader, or would."""

_BOTH: Final = {
    "another schema": Slip("^schema = 1", "schema = 2"),
    "schema as text": Slip("^schema = 1", 'schema = "1"'),
    "schema as a truth value": Slip("^schema = 1", "schema = true"),
    "schema as a fraction": Slip("^schema = 1", "schema = 1.5"),
    "no schema": Slip("^schema = 1\n", "", is_near=False),
    "a key twice": Slip("^schema = 1", "schema = 1\nschema = 1"),
    "a header that does not end": Slip(r"^\[\[(bit|cell)\]\]", r"[[\1]"),
    "a header twice": Slip(r"^\[\[(bit|cell)\]\]", r"[\1]", is_near=False),
    "no equals sign": Slip(r"^regulation = ", "regulation "),
    "a text that does not end": Slip(r'^regulation = "(.*)"$', r'regulation = "\1'),
    "a bad escape": Slip(r'^regulation = "', r'regulation = "\\q'),
    "a bell": Slip(r'^regulation = "', 'regulation = "\a'),
    "a bell, escaped": Slip(r'^regulation = "', r'regulation = "\\u0007'),
    "an escape sequence": Slip(r'^regulation = "', r'regulation = "\\u001b[31m'),
    "text that runs backwards": Slip(r'^regulation = "', 'regulation = "\u202e'),
    "a line in a name": Slip(r'^regulation = "', r'regulation = "\\n'),
    "a text of nothing": Slip(r'^regulation = ".*"', 'regulation = ""'),
    "a text too long": Slip(r'^regulation = ".*"', f'regulation = "{_LONG}"'),
    "a number for a text": Slip(r'^regulation = ".*"', "regulation = 7"),
    "a list for a text": Slip(r'^regulation = (".*")', r"regulation = [\1]"),
    "a table for a text": Slip(r'^regulation = (".*")', r"regulation = { en = \1 }"),
    "a date for a text": Slip(r'^regulation = ".*"', "regulation = 2026-01-02"),
    "an impossible date": Slip(r'^regulation = ".*"', "regulation = 2026-02-30"),
    "a number of 5,000 digits": Slip(r'^regulation = ".*"', f"regulation = {'9' * 5000}"),
    "lists in lists": Slip(r'^regulation = ".*"', f"regulation = {'[' * 5000}{']' * 5000}"),
    "a key misspelt": Slip(r"^regulation = ", "regulations = "),
    "a key left out": Slip(r"^regulation = .*\n", "", is_near=False),
    "an unknown key": Slip(r"^regulation = ", 'colour = "red"\nregulation = '),
    "an unknown key between quotes": Slip(r"^regulation = ", '"a key = [" = 1\nregulation = '),
    "an unknown key of the whole": Slip("^schema = 1", "schema = 1\ncolour = 'red'"),
    "an unknown table": Slip(_END, "[colours]\nred = 1\n", is_near=False),
    "nothing": Slip(r"\A[\s\S]*\Z", "", is_near=False),
    "no TOML": Slip(r"\A", "{"),
}

_PROFILE: Final = _BOTH | {
    "a key of a bit misspelt": Slip(r"^document = ", "documents = "),
    "a number for what it is": Slip(_STRINGS, r"\1 = 7"),
    "a list for what it is": Slip(_STRINGS, r"\1 = []"),
    "true for what it is": Slip(_STRINGS, r"\1 = true"),
    "nothing for what it is": Slip(_STRINGS, r'\1 = ""'),
    "too long for what it is": Slip(_STRINGS, rf'\1 = "{_LONG}"'),
    "a name in capitals": Slip('^name = "(?=[a-z])', 'name = "X'),
    "a name that is a path": Slip('^name = "(?=[a-z])', 'name = "../'),
    "another name of shipped bits": Slip('^name = "[a-z]+"', 'name = "generic"', but="generic"),
    "another reader": Slip(_READER, 'reader = "pdf"\n', but="edgar"),
    "a reader of other bits": Slip(_READER, 'reader = "edgar"\n', but="edgar"),
    "no such time zone": Slip('^time_zone = .*', 'time_zone = "Mars/Olympus"'),
    "a time zone that is a path": Slip("^time_zone = .*", 'time_zone = "../../etc/passwd"'),
    "a time zone that is a continent": Slip("^time_zone = .*", 'time_zone = "Europe"'),
    "a time zone with a NUL": Slip("^time_zone = .*", r'time_zone = "UTC\\u0000"'),
    "a bit in small letters": Slip('^name = "(?=[A-Z])', 'name = "b'),
    "a bit of another script": Slip('^name = "(?=[A-Z])', 'name = "\N{CYRILLIC CAPITAL LETTER A}'),
    "a bit with a space": Slip('^name = "(?=[A-Z])', 'name = "A '),
    "a bit renamed": Slip(r'(^\[\[bit\]\].*\nname = ")', r"\1X", is_near=False),
    "a bit twice": Slip(r'(?<=^name = ")([A-Z_]+)"([^\[]*\[\[bit\]\].*\nname = ")\w+', r'\1"\2\1', is_near=False),
    "a 28th bit": Slip(_END, "".join(_BIT.format(number) for number in range(27)), is_near=False),
    "no bit": Slip(r"^\[\[bit\]\](?![\s\S]*^\[\[bit\]\])[\s\S]*\Z", "bit = []", is_near=False),
    "bits in a table": Slip(_FIRST, 'bit = { name = "A" }\n', is_near=False),
    "an unknown group": Slip(_END, '[groups]\npersonel = []\n', is_near=False),
    "a group of an unknown bit": Slip(r'^(personal|cooling|transfer) = \[', r'\1 = ["NONE", '),
    "a group of numbers": Slip(r'^(personal|cooling|transfer) = \[', r"\1 = [1, "),
    "a group that is a text": Slip(r'^(personal|cooling|transfer) = \[.*\]', r'\1 = "PERSONAL"'),
    "an unknown kind of purpose": Slip(_END, '[purposes]\nadvise = ["x"]\n', is_near=False),
    "an unknown purpose": Slip(r'^(advice|access_request) = \[', r'\1 = ["none_such", '),
    "a purpose in capitals": Slip(r'^(advice|access_request) = \[', r'\1 = ["READ", '),
    "an unknown code": Slip(r"^\[regulations\]", '[regulations]\nNOT_PUBLIC_YET = "r"'),
    "a code of nothing": Slip(r"^(NOT_YET_PUBLIC|ENTITY_DENIED) = .*", r'\1 = ""'),
    "an impossible bit": Slip(_END, '[[impossible]]\nforbidden = ["NONE"]\n'),
    "all is impossible": Slip(_END, "[[impossible]]\n"),
    "impossible both ways": Slip(
        r'(^\[\[bit\]\].*\nname = ("\w+")[\s\S]*)\Z',
        r"\1[[impossible]]\nforbidden = [\2]\nrequired = [\2]\n",
        is_near=False,
    ),
    "a fact of no value": Slip(_END, '[[required]]\nfield = "kind"\none_of = []\n'),
    "a fact of one text": Slip(_END, '[[required]]\nfield = "kind"\none_of = "a"\n'),
    "a fact in capitals": Slip(r'^field = "', 'field = "K'),
    "an unknown operator": Slip(r'^operator = ".*"', 'operator = "matches"'),
    "a rule of an unknown bit": Slip(r'^bit = "', 'bit = "X'),
    "a rule of two bits": Slip(r'^bit = (".*")', r"bit = [\1, \1]"),
    "true with a value": Slip(r'^operator = "is_true"', 'operator = "is_true"\nvalue = "yes"'),
    "no value to equal": Slip(r'^operator = "equals"\nvalue = .*', 'operator = "equals"'),
    "a text to be one of": Slip(r'^operator = "one_of"\nvalue = \[[^\]]*\]', 'operator = "one_of"\nvalue = "a"'),
    "nothing to be one of": Slip(r'^operator = "one_of"\nvalue = \[[^\]]*\]', 'operator = "one_of"\nvalue = []'),
    "numbers to be one of": Slip(r'^operator = "one_of"\nvalue = \[[^\]]*\]', 'operator = "one_of"\nvalue = [1]'),
    "at least a text": Slip(_END, _RULE.format("X") + 'operator = "at_least"\nvalue = "3"\n'),
    "at most true": Slip(_END, _RULE.format("X") + 'operator = "at_most"\nvalue = true\n'),
    "at least no number": Slip(_END, _RULE.format("X") + 'operator = "at_least"\nvalue = nan\n'),
    "at most anything": Slip(_END, _RULE.format("X") + 'operator = "at_most"\nvalue = inf\n'),
    "no regular expression": Slip(_END, _INTENT + "forbidden = []\nphrases = ['final(']\n"),
    "a phrase repeated too often": Slip(_END, _INTENT + "forbidden = []\nphrases = ['a{99999999999999999999}']\n"),
    "a phrase too deep": Slip(_END, _INTENT + f"forbidden = []\nphrases = ['{'(' * 400}{')' * 400}', '*']\n"),
    "a phrase of nothing": Slip(_END, _INTENT + "phrases = ['']\n"),
    "no phrase": Slip(_END, _INTENT + "phrases = []\n"),
    "an intent of no bit": Slip(_END, _INTENT + "phrases = ['final']\n"),
    "an intent of an unknown bit": Slip(_END, _INTENT + "phrases = ['final']\nforbidden = ['NONE']\n"),
    "an intent that contradicts itself": Slip(
        r'(^\[\[bit\]\].*\nname = ("\w+")[\s\S]*)\Z',
        _INTENT.replace("[[", r"\1[[", 1) + "phrases = ['final']\nforbidden = [\\2]\nrequired = [\\2]\n",
        is_near=False,
    ),
    "an intent that widens": Slip(_END, _INTENT + "phrases = ['final']\nadmits = ['DRAFT']\n"),
    "an intent unless any right": Slip(_END, _INTENT + "phrases = ['final']\nunless = 'may_know_existence'\n"),
    "capitals that matter somewhat": Slip(_END, _INTENT + "phrases = ['final']\ncase_matters = 'no'\n"),
    "an intent twice": Slip(r"(^\[\[intent\]\][^\[]*?^phrases = .*\n)", r"\1\n\1", is_near=False, but="edgar"),
    "not meant and no expression": Slip(r"^not_meant = \[", "not_meant = ['(', "),
}  # fmt: skip

_ROLES: Final = _BOTH | {
    "a role in capitals": Slip('^role = "', 'role = "R'),
    "a role that is not declared": Slip('^role = "', 'role = "x'),
    "a purpose that is not declared": Slip('^purpose = "', 'purpose = "x'),
    "roles that forget one": Slip(r'^roles = \["\w+", ', "roles = [", is_near=False),
    "purposes that forget one": Slip(r'^purposes = \["\w+", ', "purposes = [", is_near=False),
    "a role of a number": Slip(r"^roles = \[", "roles = [1, "),
    "roles as one text": Slip(r"^roles = \[.*\]", 'roles = "all"'),
    "no role": Slip(r'^role = ".*"\n', "", is_near=False),
    "no purpose": Slip(r'^purpose = ".*"\n', "", is_near=False),
    "a cell twice": Slip(r"(^\[\[cell\]\][\s\S]*?)(?=^\[\[cell)", r"\1\1", is_near=False),
    "knowing of existence in words": Slip("^may_know_existence = .*", 'may_know_existence = "yes"'),
    "knowing of existence in numbers": Slip("^may_know_existence = .*", "may_know_existence = 1"),
    "knowing of existence left out": Slip("^may_know_existence = .*\n", "", is_near=False),
    "an unknown past": Slip("^past = .*", 'past = "always"'),
    "a past of nothing": Slip("^past = .*", 'past = ""'),
    "a past left out": Slip("^past = .*\n", "", is_near=False),
    "a list that some need": Slip("^past = (?!.*\nallow_list)", 'allow_list = "some"\npast = '),
    "a list that is a truth value": Slip("^past = (?!.*\nallow_list)", "allow_list = true\npast = "),
    "a right in words": Slip("^past = ", 'personal_data = "yes"\npast = '),
    "no mask": Slip(r"^masks = \[\{.*\}\]\n", "masks = []\n"),
    "nine masks": Slip(r"^masks = \[", f"masks = [{'{}, ' * 9}"),
    "a mask alone": Slip(r"^masks = \[(\{.*\})\]", r"masks = \1"),
    "a mask that is a text": Slip(r"^masks = \[", 'masks = ["all", '),
    "a mask of an unknown bit": Slip(r"\{ (forbidden|required) = \[", r'{ \1 = ["NONE", '),
    "a mask of a number": Slip(r"\{ (forbidden|required) = \[", r"{ \1 = [1, "),
    "a mask of one text": Slip(r"\{ (forbidden|required) = \[[^\]]*\]", r'{ \1 = "ALL"'),
    "a mask misspelt": Slip(r"\{ (forbidden|required) = ", r"{ \1s = "),
    "a mask that contradicts itself": Slip(r'\{ forbidden = \["(\w+)"', r'{ required = ["\1"], forbidden = ["\1"'),
    "an unknown condition": Slip(r"\{ (?=forbidden|required)", '{ when = "always", '),
    "a condition for all": Slip(
        r"^masks = \[\{ (?=forbidden|required)(?=[^{]*$)", 'masks = [{ when = "not_participating", '
    ),
    "masks that overlap": Slip(r"^masks = \[", 'masks = [{}, { when = "not_participating" }, '),
}  # fmt: skip


def mutants(places: int) -> Iterator[Mutant]:
    """Make every slip in every profile, in at most ``places`` places, spread over the file."""
    for base, texts in BASES.items():
        for which, slips in enumerate((_PROFILE, _ROLES)):
            text = texts[which]
            for name, slip in slips.items():
                found = [] if base == slip.but else list(re.finditer(slip.pattern, text, re.MULTILINE))
                for match in found[:: max(1, -(-len(found) // places))]:
                    mutated = text[: match.start()] + match.expand(slip.written) + text[match.end() :]
                    both = (mutated, texts[1]) if which == 0 else (texts[0], mutated)
                    lines = frozenset(_holders(text, mutated) if slip.is_near else ())
                    yield Mutant(name, base, FILES[which], both, lines)


def _holders(text: str, mutated: str) -> Iterator[int]:
    """Return the lines that differ, the nearest header before them, and lines that open a list or a mask."""
    before, after = text.split("\n"), mutated.split("\n")
    same = next(
        (at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b),
        min(len(before), len(after)) - 1,
    )
    yield from range(same + 1, same + 1 + max(1, len(after) - len(before) + 1))
    for at in range(same, -1, -1):
        if after[at].startswith("["):
            yield at + 1
            return
        if after[at].rstrip().endswith(("[", "{")) or "{ " in after[at]:
            yield at + 1
    yield 1
