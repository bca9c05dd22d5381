"""Play a witness (``c2sp.org/tlog-witness``): remember one checkpoint a log, cosign what continues it.

It keeps its state in memory. Comparing with the checkpoint before and replacing it is one step, so two checkpoints
that do not continue each other are never both cosigned.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.keys import VerifierKey, WitnessSigningKey
from carag.audit.tlog.log_verifier import signed_by_known
from carag.audit.tlog.merkle import EMPTY_ROOT, verify_consistency
from carag.audit.tlog.proof import ConsistencyProof
from carag.errors import CaragError
from tests.audit.anchors.served import served

_SIZE_TYPE = "text/x.tlog.size"


class Answer(NamedTuple):
    """What goes back over HTTP."""

    status: int
    text: str
    content_type: str = "text/plain; charset=utf-8"


class Witness:
    """A witness of the logs with these vkeys; ``clock`` returns seconds since 1970 UTC."""

    def __init__(self, name, vkeys, clock):
        self._key, self._clock = WitnessSigningKey.generate(name), clock
        self._mutex = threading.Lock()
        self._keys, self._newest = {}, {}
        for key in map(VerifierKey.parse, vkeys):
            self._keys.setdefault(key.name, []).append(key)
            self._newest[key.name] = Checkpoint(key.name, 0, EMPTY_ROOT)

    @property
    def vkey(self):
        """The public key that verifies its cosignatures."""
        return str(self._key.verifier)

    def add_checkpoint(self, body):
        """Answer one ``add-checkpoint`` request."""
        try:
            request = ConsistencyProof.parse(body.decode("utf-8"))
            new = Checkpoint.parse(request.checkpoint.text)
        except (UnicodeDecodeError, CaragError) as error:
            return Answer(400, f"{error}\n")
        if new.origin not in self._keys:
            return Answer(404, f"no log {new.origin} is watched here\n")
        if not signed_by_known(request.checkpoint, self._keys[new.origin]):
            return Answer(403, f"no signature by a known key of {new.origin}\n")
        if request.old > new.size:
            return Answer(400, f"old {request.old} is more than the checkpoint's {new.size}\n")
        with self._mutex:
            return self._compare_and_set(request, new)

    def _compare_and_set(self, request, new):
        known = self._newest[new.origin]
        if request.old != known.size or (known.size == new.size and known.root != new.root):
            return Answer(409, f"{known.size}\n", _SIZE_TYPE)
        if not _continues(known, new, request.hashes):
            return Answer(422, f"{new.size} records do not continue the {known.size} cosigned before\n")
        cosignature = self._key.cosign(request.checkpoint, self._clock())
        self._newest[new.origin] = new
        return Answer(200, f"{cosignature.to_line()}\n")


def _continues(known, new, hashes):
    if known.size == 0:
        return not hashes and (new.size > 0 or new.root == EMPTY_ROOT)
    return verify_consistency(known.size, new.size, hashes, known.root, new.root)


def serve(witness):
    """Bind a witness to a free port of this machine; call ``serve_forever`` on what is returned."""

    def answer(method, target, _headers, body):
        known = (method, target) == ("POST", "/add-checkpoint")
        given = witness.add_checkpoint(body) if known else Answer(404, "want POST /add-checkpoint\n")
        return given.status, {"Content-Type": given.content_type}, given.text.encode()

    return served(answer)
