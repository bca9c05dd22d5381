"""Count lines of code, without blanks, comments and docstrings: ``python scripts/lines.py [FOLDER ...]``.

Python by room of each folder; C without blank lines and comments. ``tests/test_package.py`` holds the ceiling.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

_IDLE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}
_C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def python_lines(source: str) -> int:
    r"""Count the lines of a Python source that hold code.

    Examples
    --------
    >>> python_lines('"A module."\n\nx = 1  # one\n')
    1
    """
    prose: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                prose |= {*range(first.lineno, (first.end_lineno or first.lineno) + 1)}
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _IDLE:
            code |= {*range(token.start[0], token.end[0] + 1)}
    return len(code - prose)


def c_lines(source: str) -> int:
    r"""Count the lines of a C source that hold code.

    Examples
    --------
    >>> c_lines("/* Two\nlines. */\nint x; // one\n")
    1
    """
    bare = _C_COMMENT.sub(lambda found: "\n" * found[0].count("\n"), source)
    return sum(bool(line.strip()) for line in bare.splitlines())


def count(folder: Path) -> Counter[str]:
    """Count the lines of code in a folder by room: its subfolders, and the files in none.

    Examples
    --------
    >>> counted = count(Path(__file__).parents[1] / "csrc")
    >>> 0 < counted["hnsw"] < counted.total()
    True
    """
    found: Counter[str] = Counter()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        room = inside[0] if len(inside) > 1 else "."
        if path.suffix == ".py":
            found[room] += python_lines(path.read_text("utf-8"))
        elif path.suffix in (".c", ".h"):
            found[room] += c_lines(path.read_text("utf-8"))
    return found


def main() -> None:
    """Print a table for each folder."""
    root = Path(__file__).parents[1]
    for name in sys.argv[1:] or ["carag", "csrc", "tests", "bench", "scripts"]:
        counted = count(root / name)
        print(f"{counted.total():7,} {name}")
        for room, lines in counted.most_common():
            print(f"{lines:7,}     {room}")


if __name__ == "__main__":
    main()
