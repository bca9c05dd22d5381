"""Start ``carag`` or ``python -m carag``, and name a missing extra before anything runs.

``verify`` and ``receipt`` need ``cryptography`` alone, so they are started before Typer is imported.
"""

from __future__ import annotations

import sys

from carag import cli
from carag.errors import MissingExtra
from carag.extras import require


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
    sys.exit(cli.Exit.INTERNAL)  # the installation is at fault, not the caller's input


def _command(words: list[str]) -> str:
    return " ".join(["carag", *words[:1]])


def _run(words: list[str]) -> int:
    if words[:1] in (["verify"], ["receipt"]):
        require(_command(words), "verify")
        from carag.cli.verify import run

        return run(words)
    require(_command(words), "engine")
    cli.main(words)
    return cli.Exit.OK


if __name__ == "__main__":
    main()
