"""Anchor checkpoints with RFC 3161 timestamps: an authority signs that a checkpoint existed at a time.

The timestamp covers the SHA-256 of the checkpoint's file, which is its signed note as UTF-8. The evidence keeps the
authority's whole reply (DER, section 2.4.2), so ``openssl ts -verify`` can check it without this program. A
timestamp prevents backdating: a thief of the log's key cannot get a timestamp from last month. It does not detect
forks, so use a witness or a locked bucket as well, and two authorities rather than one. Needs ``rfc3161-client`` (the
extra ``anchors``), which makes the request and verifies the reply but opens no connection.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509

from carag.audit.anchors._http import TIMEOUT_SECONDS, check_url, post
from carag.audit.anchors.evidence import Evidence
from carag.audit.tlog.encoding import b64, unb64
from carag.errors import AnchorUnavailable, CorruptFile, InvalidArgument, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from carag.audit.anchors.anchor import Submission
    from carag.audit.tlog.checkpoint import Checkpoint
    from carag.audit.tlog.note import NoteKey


CLOCK_TOLERANCE_SECONDS: Final = 300
"""Greatest difference between the authority's clock and this machine's."""

_QUERY: Final = "application/timestamp-query"
_REPLY: Final = "application/timestamp-reply"


class TimestampAnchor:
    """A timestamp authority at a URL.

    Parameters
    ----------
    roots : path or sequence of bytes
        Root certificates trusted for the authority: a PEM file, or certificates in PEM.
    timeout : float
        Seconds for one request.

    Raises
    ------
    InvalidArgument
        If the URL or the certificates are invalid.
    MissingExtra
        If ``rfc3161-client`` is not installed.
    """

    kind: Final = "tsa"

    def __init__(
        self,
        url: str,
        roots: str | PathLike[str] | Sequence[bytes],
        *,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self._library: Any = _library()
        self.place, self._timeout = check_url(url), timeout
        try:
            pems = [Path(roots).read_bytes()] if not isinstance(roots, (list, tuple)) else roots  # type: ignore[arg-type]
            self._roots = [cert for pem in pems for cert in x509.load_pem_x509_certificates(pem)]
        except (OSError, ValueError) as error:
            raise InvalidArgument(
                f"no certificates to verify {url} with: {error}; want a PEM file"
            ) from error
        if not self._roots:
            raise InvalidArgument(f"no certificates to verify {url} with; want at least one")

    def submit(self, submission: Submission) -> Evidence:
        """Have the checkpoint timestamped."""
        message = submission.checkpoint.to_text().encode()
        algorithm = self._library.HashAlgorithm.SHA256
        builder = self._library.TimestampRequestBuilder().data(message).hash_algorithm(algorithm)
        request = builder.nonce(nonce=True).cert_request(cert_request=True).build()
        reply = post(
            self.place, request.as_bytes(), {"Content-Type": _QUERY, "Accept": _REPLY}, self._timeout
        )
        if reply.status != 200 or reply.kind != _REPLY or reply.body is None:
            raise AnchorUnavailable(
                f"{self.place} answers with HTTP status {reply.status} and {reply.kind or 'no type'}; "
                f"want 200 and {_REPLY}"
            )
        try:
            seen = self._verify(reply.body, message, request.nonce)
        except CorruptFile as error:
            raise AnchorUnavailable(
                f"{self.place} does not answer with a valid timestamp: {error}"
            ) from error
        if abs(seen - submission.now) > CLOCK_TOLERANCE_SECONDS * 1_000_000:
            raise AnchorUnavailable(
                f"{self.place} gives the time {seen // 1_000_000}, and this machine {submission.now // 1_000_000} "
                "(seconds since 1970); one of the two clocks is wrong, and records carry this machine's time"
            )
        proof = {"reply": b64(reply.body)}
        return Evidence(self.kind, self.place, submission.checkpoint, seen, proof)

    def confirm(self, evidence: Evidence, keys: tuple[NoteKey, ...]) -> Checkpoint:
        """Check a timestamp offline."""
        tree = evidence.check_signed(keys)
        reply = evidence.proof.get("reply")
        if not isinstance(reply, str) or len(evidence.proof) != 1:
            raise CorruptFile(f"the evidence for {tree.size} records holds no timestamp reply")
        seen = self._verify(unb64(reply), evidence.checkpoint.to_text().encode(), None)
        if seen != evidence.seen:
            raise CorruptFile(f"the timestamp states {seen}, the evidence {evidence.seen}")
        return tree

    def _verify(self, reply: bytes, message: bytes, nonce: int | None) -> int:
        """Return the timestamp in microseconds since 1970; CorruptFile if the reply does not verify."""
        builder = self._library.VerifierBuilder(roots=list(self._roots), nonce=nonce)
        try:
            response = self._library.decode_timestamp_response(reply)
            if response.status not in (0, 1):  # PKIStatus granted, grantedWithMods (RFC 3161 section 2.4.2)
                raise CorruptFile(f"the authority refused: status {response.status} {response.status_string}")
            builder.build().verify_message(response, message)
            stamped = response.tst_info.gen_time
        except (ValueError, self._library.VerificationError) as error:
            raise CorruptFile(f"the timestamp does not verify: {error}") from error
        return int(stamped.timestamp()) * 1_000_000 + int(stamped.microsecond)


def _library() -> Any:
    try:
        import rfc3161_client
    except ImportError as absent:
        raise MissingExtra(
            "timestamps need rfc3161-client; run: pip install 'carag-engine[anchors]'"
        ) from absent
    return rfc3161_client
