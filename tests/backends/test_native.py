"""The native index conforms."""

from __future__ import annotations

from carag.backends import NativeBackend
from tests.backends.conformance import Conformance


class TestNative(Conformance):
    """In this process; a second connection is the same object."""

    compares_words = False

    def new(self, dim):
        return NativeBackend(dim)

    def another(self, backend):
        return backend

    def stop(self, backend):
        backend.close()
