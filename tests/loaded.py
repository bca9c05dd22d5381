"""A file run as a module of its own, beside every other copy of it: a script, or what another file of tests defines."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


def loaded(path: Path, name: str) -> ModuleType:
    """Run a file under a name that no other module has; dataclasses look themselves up by it."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
