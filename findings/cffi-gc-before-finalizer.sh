#!/bin/sh
# cffi 2.1.1, CPython 3.11: in a collected reference cycle, the destructor of `ffi.gc` may run before the finalizers of the
# objects that hold the pointer, and the pointer still reads as if it were whole.
#
# A good engineer guesses that what an object owns is released after the object's own finalizer, as it is without a cycle.
# In a cycle, the collector calls `__del__` and generators' `finally` blocks, and the weak references that `ffi.gc` is made
# of, in an order of its own. So an object's last "save" can be handed a pointer whose memory was already freed, and nothing
# in Python shows it. A `weakref.finalize` on the plain pointer, which the collector does not track, runs after all of these.
#
# Nothing is freed here: the destructor only notes that it ran.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check cffi==2.1.1 2>/dev/null
"$home/venv/bin/python" - <<'PYTHON'
import gc
import weakref

from cffi import FFI

ffi = FFI()
seen = []


class Handle:
    """Holds a pointer; its finalizer uses it once more."""

    def __init__(self, how):
        plain = ffi.new("int *", 7)
        self.keep = plain
        if how == "ffi.gc":
            self.pointer = ffi.gc(plain, lambda _: seen.append("released"))
        else:
            self.pointer = ffi.cast("int *", plain)
            weakref.finalize(self.pointer, seen.append, "released")


def opened(handle):
    try:
        yield handle
    finally:
        seen.append(f"saved through a pointer that reads {handle.pointer[0]}")


def run(how, in_cycle):
    seen.clear()
    gc.disable()
    handle = Handle(how)
    held = opened(handle)
    next(held)
    handle.held = held if in_cycle else None
    del handle, held
    gc.collect()
    return list(seen)


after = ["saved through a pointer that reads 7", "released"]
for how in ("ffi.gc", "weakref.finalize"):
    for in_cycle in (False, True):
        got = run(how, in_cycle)
        print(f"{how}, {'in a cycle' if in_cycle else 'without one'}: {got}")
        wanted = after[::-1] if how == "ffi.gc" and in_cycle else after
        assert got == wanted, f"this has changed: want {wanted}"
PYTHON
echo "as written"
