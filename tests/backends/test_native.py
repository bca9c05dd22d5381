"""The native index conforms."""

from __future__ import annotations

import tempfile
from pathlib import Path

from carag.backends import NativeBackend
from tests.backends.conformance import Conformance
from tests.remains import remains


class TestNative(Conformance):
    """In this process; a second connection is the same object."""

    compares_words = False

    def new(self, dim):
        return NativeBackend(dim)

    def another(self, backend):
        return backend

    def stop(self, backend):
        backend.close()

    def stored(self, backend, wanted):
        with tempfile.TemporaryDirectory() as directory:
            backend._index.save(Path(directory) / "rows")
            return remains(wanted, Path(directory))
