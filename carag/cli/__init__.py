"""Run the command line ``carag``.

This module imports neither Typer nor the engine: ``carag verify`` needs ``cryptography`` alone.
"""

from __future__ import annotations

import sys

from carag.cli._output import Exit, escape_unencodable, hang_up

__all__ = ["Exit", "main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    from carag.cli.app import run

    escape_unencodable()
    code = run(arguments)
    if code == Exit.HUNG_UP:
        hang_up()
    sys.exit(code)
