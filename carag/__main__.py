"""``python -m carag``."""

from __future__ import annotations

from carag.cli import main

if __name__ == "__main__":
    main()
