"""The native index conforms."""

from __future__ import annotations

from carag.backends import NativeBackend
from tests.backends.conformance import Conformance
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
