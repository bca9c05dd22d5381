"""Tell a mutant that only words differently from one that does something else.

Two functions are compared node by node. Where the original speaks to a person the mutant may say anything: in the
message of what is raised, in a text of several words, and in the name by which a check calls its value.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SEVERAL_WORDS = re.compile(r"\w\W? +\w")


def words_only(original: ast.AST, mutant: ast.AST, names: Mapping[str, int | str]) -> bool:
    """Say whether two functions differ in words alone; ``names`` says which argument of a check is a name."""
    return _alike(original, mutant, {id(node) for node in _spoken(original, names)})


def _spoken(function: ast.AST, names: Mapping[str, int | str]) -> Iterator[ast.AST]:
    for node in ast.walk(function):
        match node:
            case ast.Raise(exc=ast.Call(args=[*_, message])):
                yield message
            case ast.Call(func=check, args=args, keywords=keywords):
                place = names.get(ast.unparse(check))
                yield from (arg for number, arg in enumerate(args) if number == place)
                yield from (keyword.value for keyword in keywords if keyword.arg == place)
            case ast.Constant(value=str(text)) if _SEVERAL_WORDS.search(text):
                yield node
            case ast.JoinedStr(values=parts) if any(
                isinstance(part, ast.Constant) and _SEVERAL_WORDS.search(part.value) for part in parts
            ):
                yield node


def _alike(one: object, other: object, spoken: set[int]) -> bool:
    if id(one) in spoken:
        return True
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_alike(a, b, spoken) for a, b in zip(one, other, strict=True))
    if not isinstance(one, ast.AST):
        return one == other
    return type(one) is type(other) and all(
        _alike(value, getattr(other, field), spoken)
        for field, value in ast.iter_fields(one)
        if not (isinstance(one, ast.FunctionDef) and field == "name")
    )
