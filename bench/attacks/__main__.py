"""Carry out the attacks, and print or insert the page's table: ``python -m bench.attacks [--page FILE]``."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.attacks.attacks import ATTACKS, again, insert, pattern, stage, table


def main() -> int:
    """Carry out every attack, and print or insert the table; return 1 if an auditor detects anything unexpected."""
    parser = argparse.ArgumentParser(description="Fifteen attacks on a log, and who notices each.")
    parser.add_argument("--page", type=Path, help="insert the table between its marks in this file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        scene, wrong = stage(Path(directory)), 0
        for number, attack in enumerate(ATTACKS):
            attacked = again(scene, Path(directory) / str(number))
            attack.act(attacked)
            seen = pattern(attacked)
            wrong += seen != attack.noticed
            print(f"{seen}  {attack.name}{'' if seen == attack.noticed else f'  (want {attack.noticed})'}")
    if given.page is None:
        print(table())
    elif not wrong:
        given.page.write_text(insert(given.page.read_text("utf-8")), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
