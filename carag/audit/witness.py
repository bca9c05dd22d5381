"""A tiny witness (``c2sp.org/tlog-witness``): remember one checkpoint a log, cosign what continues it.

Run it where the log's operator has no say, with nothing but this room installed::

    python -m carag.audit.witness DIR --name witness.example/w1 --log VKEY --listen 127.0.0.1:8099

It prints its vkey for the policy file of the log's readers, and answers ``POST /add-checkpoint``. Put a reverse
proxy with TLS in front of it. Its directory holds:

==================  ========================================================================================
``witness.key``     the signing key (0600)
``logs``            the vkeys of the logs it watches, one a line
``state/``          for each log the newest checkpoint it cosigned; empty until the first
``witness.lock``    held by the one process
==================  ========================================================================================

A checkpoint is on the disk before its cosignature leaves, and comparing with the one before and replacing it is
one step; so two checkpoints that do not continue each other are never both cosigned, whatever comes at the same
time and whenever the process dies. A witness whose directory was lost or put back to an earlier state must
be retired: it would cosign another history. A missing state file is therefore an error, not a new beginning.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from carag.audit._files import WriterLock, sync_directory, write_atomically
from carag.audit.anchors.cosignature import WitnessSigningKey
from carag.audit.checkpoint import Checkpoint
from carag.audit.log_keys import signed_by_known
from carag.audit.merkle import EMPTY_ROOT, verify_consistency
from carag.audit.note import Note, NoteKey, VerifierKey
from carag.audit.proof import ConsistencyProof
from carag.errors import CaragError, CorruptFile, InvalidArgument
from carag.visible import visible_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Answer", "Witness", "main", "serve"]

MAX_REQUEST_BYTES: Final = 1 << 17
_SIZE_TYPE: Final = "text/x.tlog.size"
_TEXT_TYPE: Final = "text/plain; charset=utf-8"
_SOCKET_SECONDS: Final = 10


class Answer(NamedTuple):
    """What goes back over HTTP."""

    status: int
    text: str
    content_type: str = _TEXT_TYPE


def _system_clock() -> int:
    return int(time.time())


class Witness:
    """A witness over its directory. Use :meth:`open`; safe to share between threads.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with Witness.open(directory, name="witness.example/w1") as witness:
    ...         witness.add_checkpoint(b"old 0").status
    400
    """

    def __init__(
        self, home: Path, key: WitnessSigningKey, lock: WriterLock, clock: Callable[[], int]
    ) -> None:
        self._home, self._key, self._lock, self._clock = home, key, lock, clock
        self._mutex = threading.Lock()
        self._logs: dict[str, tuple[NoteKey, ...]] = {}

    @classmethod
    def open(
        cls,
        directory: str | Path,
        *,
        name: str | None = None,
        logs: Sequence[str] = (),
        clock: Callable[[], int] = _system_clock,
    ) -> Self:
        """Open a witness's directory, founding it on first use.

        Parameters
        ----------
        directory : path
        name : str, optional
            Its name, a URL without scheme; needed on first use.
        logs : sequence of str
            vkeys of further logs to watch; a second key of a known log is one more that may sign for it.
        clock : callable, optional
            Seconds since 1970 UTC.

        Raises
        ------
        InvalidArgument
            If a vkey is none, or the name is missing on first use or not the one the witness has.
        StoreLocked
            If another process has it open.
        CorruptFile
            If something of its state is missing.
        """
        home = Path(directory)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = WriterLock(home / "witness.lock")
        try:
            witness = cls(home, cls._own_key(home, name), lock, clock)
            listed = home / "logs"
            for vkey in listed.read_text("utf-8").split() if listed.exists() else ():
                witness._watch(vkey, known=True)
            for vkey in logs:
                witness._watch(vkey, known=False)
        except BaseException:
            lock.release()
            raise
        return witness

    @property
    def vkey(self) -> str:
        """The public key that verifies its cosignatures."""
        return str(self._key.verifier)

    def add_checkpoint(self, body: bytes) -> Answer:
        """Answer one ``add-checkpoint`` request."""
        try:
            request = ConsistencyProof.parse(body.decode("utf-8"))
            new = Checkpoint.parse(request.checkpoint.text)
        except (UnicodeDecodeError, CaragError) as error:
            return Answer(400, f"{error}\n")
        keys = self._logs.get(new.origin)
        if keys is None:
            return Answer(404, f"no log {new.origin} is watched here\n")
        if not signed_by_known(request.checkpoint, keys):
            return Answer(403, f"no signature by a known key of {new.origin}\n")
        if request.old > new.size:
            return Answer(400, f"old {request.old} is more than the checkpoint's {new.size}\n")
        with self._mutex:
            return self._compare_and_set(request, new)

    def close(self) -> None:
        """Let another process open the directory."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _compare_and_set(self, request: ConsistencyProof, new: Checkpoint) -> Answer:
        path = self._state(new.origin)
        text = path.read_text("utf-8")
        known = Checkpoint.parse(Note.parse(text).text) if text else Checkpoint(new.origin, 0, EMPTY_ROOT)
        if known.origin != new.origin:
            raise CorruptFile(f"{path} is the state of {known.origin}, not of {new.origin}")
        if request.old != known.size:
            return Answer(409, f"{known.size}\n", _SIZE_TYPE)
        if known.size == new.size and known.root != new.root:
            return Answer(409, f"{known.size}\n", _SIZE_TYPE)
        if not _continues(known, new, request.hashes):
            return Answer(422, f"{new.size} records do not continue the {known.size} cosigned before\n")
        cosignature = self._key.cosign(request.checkpoint, self._clock())
        write_atomically(path, request.checkpoint.signed_also([cosignature]).to_text().encode())
        return Answer(200, f"{cosignature.to_line()}\n")

    def _watch(self, vkey: str, *, known: bool) -> None:
        key = VerifierKey.parse(vkey)
        keys = self._logs.get(key.name, ())
        if key in keys:
            return
        state = self._state(key.name)
        if not known and not keys:
            if state.exists():
                raise CorruptFile(f"{state} exists though {key.name} is not listed in {self._home / 'logs'}")
            state.parent.mkdir(mode=0o700, exist_ok=True)
            sync_directory(self._home)
            write_atomically(state, b"")
        if not state.exists():
            raise CorruptFile(
                f"{state} is missing, so what was cosigned of {key.name} is forgotten; retire this witness"
            )
        self._logs[key.name] = (*keys, key)
        if not known:
            lines = (f"{listed}\n" for keys in self._logs.values() for listed in keys)
            write_atomically(self._home / "logs", "".join(lines).encode(), mode=0o644)

    def _state(self, origin: str) -> Path:
        return self._home / "state" / hashlib.sha256(origin.encode()).hexdigest()

    @staticmethod
    def _own_key(home: Path, name: str | None) -> WitnessSigningKey:
        path = home / "witness.key"
        if path.exists():
            key = WitnessSigningKey.parse(path.read_text("utf-8"))
            if name not in (None, key.name):
                raise InvalidArgument(f"{home} is the witness {key.name}, not {name}; leave the name out")
            return key
        if (home / "state").exists() or (home / "logs").exists():
            raise CorruptFile(f"{path} is missing though the witness has a state; restore it from a backup")
        if name is None:
            raise InvalidArgument(f"{home} holds no witness; give it a name, such as witness.example/w1")
        key = WitnessSigningKey.generate(name)
        write_atomically(path, f"{key.to_skey()}\n".encode())
        return key


def _continues(known: Checkpoint, new: Checkpoint, hashes: Sequence[bytes]) -> bool:
    if known.size == 0:
        return not hashes and (new.size > 0 or new.root == EMPTY_ROOT)
    return verify_consistency(known.size, new.size, hashes, known.root, new.root)


def serve(witness: Witness, host: str, port: int) -> ThreadingHTTPServer:
    """Bind a witness to an address; call ``serve_forever`` on what is returned. Port 0 takes a free one."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version, sys_version = "carag-witness", ""
        timeout = _SOCKET_SECONDS

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if self.path != "/add-checkpoint":
                self._send(Answer(404, "want POST /add-checkpoint\n"))
            elif not (length.isascii() and length.isdecimal() and int(length) <= MAX_REQUEST_BYTES):
                self._send(Answer(413, f"want a Content-Length of at most {MAX_REQUEST_BYTES}\n"))
            else:
                body = self.rfile.read(int(length))
                try:
                    self._send(witness.add_checkpoint(body))
                except (CaragError, OSError) as error:  # its own disk or state: nothing was cosigned
                    sys.stderr.write(visible_line(str(error)) + "\n")
                    self._send(Answer(500, "the witness cannot cosign now\n"))

        def _send(self, answer: Answer) -> None:
            data = answer.text.encode()
            self.close_connection = answer.status in (404, 413, 500)
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Write nothing: what it cosigned is in its state."""

    return ThreadingHTTPServer((host, port), Handler)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a witness until it is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m carag.audit.witness", description="A tlog-witness.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--name", help="its name, a URL without scheme; on first use")
    parser.add_argument("--log", action="append", default=[], metavar="VKEY", help="a log to watch")
    parser.add_argument("--listen", default="127.0.0.1:8099", metavar="HOST:PORT")
    options = parser.parse_args(arguments)
    host, _, port = options.listen.rpartition(":")
    if not (host and port.isdecimal() and int(port) < 65536):
        parser.error(f"--listen is {options.listen!r}; want HOST:PORT")
    try:
        with (
            Witness.open(options.directory, name=options.name, logs=options.log) as witness,
            serve(witness, host, int(port)) as server,
        ):
            sys.stdout.write(f"{witness.vkey}\nhttp://{host}:{server.server_address[1]}\n")
            sys.stdout.flush()
            server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        return 0
    except (CaragError, OSError) as error:
        sys.stderr.write(visible_line(str(error)) + "\n")
        return 65
    return 0


if __name__ == "__main__":
    sys.exit(main())
