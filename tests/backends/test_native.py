"""The native index conforms."""

from __future__ import annotations

import tempfile
from pathlib import Path

from carag.backends import NativeBackend
from tests.backends.conformance import Conformance
from tests.remains import remains
from tests.sizes import examples


class TestNative(Conformance):
    """In this process; a second connection is the same object."""

    compares_words = False
    worlds, all_worlds = examples(500), 100_000

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
