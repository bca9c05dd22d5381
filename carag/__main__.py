"""The command ``carag``, also as ``python -m carag``: says which extra is missing before it runs anything.

An auditor's ``verify`` and ``receipt`` need cryptography alone and are told apart here, before Typer is imported.
"""

from __future__ import annotations

import sys

from carag.errors import MissingExtra
from carag.extras import require

__all__ = ["main"]

_INTERNAL = 70
"""As :class:`carag.cli.Exit` has it, which cannot be imported without Typer: the installation is at fault, not the
caller's input."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        sys.exit(_run(words))
    except MissingExtra as absent:
        sys.stderr.write(f"{absent}\n")
    except Exception as error:  # noqa: BLE001 - Python's own exit code for a traceback is 1, which says "tampered"
        sys.stderr.write(
            f"{_command(words)} cannot be loaded: {type(error).__name__}: {error}; install it again\n"
        )
    sys.exit(_INTERNAL)


def _command(words: list[str]) -> str:
    return " ".join(["carag", *words[:1]])


def _run(words: list[str]) -> int:
    if words[:1] in (["verify"], ["receipt"]):
        require(_command(words), "verify")
        from carag.verify_command import run

        return run(words)
    require(_command(words), "engine")
    from carag.cli import main as run_command

    run_command(words)
    return 0


if __name__ == "__main__":
    main()
