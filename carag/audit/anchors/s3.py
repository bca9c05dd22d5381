"""Anchor checkpoints in S3 Object Lock, where they cannot be deleted before their retention ends.

Each checkpoint is an object, ``<prefix>/<SHA-256 of the origin>/<size, 20 digits>``, that holds the signed note. It is
written in retention mode COMPLIANCE, which not even the account's root user can shorten, and only if no object of that
name exists (``If-None-Match: *``). Then bytes, lock and its end are read back, because a bucket without Object Lock
would protect nothing. Its time is S3's "last modified", not this machine's clock.

Before each write the newest object below the prefix is found (by binary search, with one listing if there is no newer
one) and the log must continue it: this detects a rollback or fork even if this machine has no trace of it.

Use a bucket in another account, with versioning and Object Lock on, and a role that may ``s3:PutObject``,
``s3:PutObjectRetention``, ``s3:GetObject``, ``s3:GetObjectVersion``, ``s3:GetObjectRetention`` and
``s3:ListBucket`` below the prefix, and nothing else. Needs ``boto3`` (the extra ``anchors``).
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from carag.audit.anchors._http import TIMEOUT_SECONDS
from carag.audit.anchors.anchor import check_known
from carag.audit.anchors.evidence import Evidence
from carag.audit.tlog.note import Note
from carag.errors import AnchorUnavailable, CorruptFile, InvalidArgument, MissingExtra

if TYPE_CHECKING:
    from carag.audit.anchors.anchor import Submission
    from carag.audit.tlog.checkpoint import Checkpoint
    from carag.audit.tlog.note import NoteKey


RETAIN_DAYS: Final = 2557
"""Default retention: seven years. In COMPLIANCE mode it cannot be shortened later."""

CLOCK_TOLERANCE_SECONDS: Final = 300
"""Greatest difference between S3's clock and this machine's."""
_SLACK: Final = timedelta(days=1)
"""How much earlier the lock of an existing object may end than that of a new object."""
_MAX_OBJECT_BYTES: Final = 1 << 18
"""Largest object that is read."""
_PLACE: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", re.ASCII)
_HINTS: Final = {
    "AccessDenied": "; see carag.audit.anchors.s3 for the rights it needs",
    "InvalidRequest": "; the bucket needs versioning and Object Lock",
}


class _Stored(NamedTuple):
    data: bytes
    version: str
    mode: str
    retained_until: datetime
    modified: datetime


class S3Anchor:
    """A bucket with Object Lock.

    Parameters
    ----------
    place : str
        ``s3://bucket/prefix``.
    retain_days : int
        Days for which each checkpoint is locked.
    region, endpoint_url : str, optional
        By default from boto3's configuration, from which credentials always come.
    timeout : float
        Seconds to connect, and to wait for an answer.

    Raises
    ------
    InvalidArgument
        If the place or the number of days is invalid.
    MissingExtra
        If boto3 is not installed.
    """

    kind: Final = "s3"

    def __init__(
        self,
        place: str,
        *,
        retain_days: int = RETAIN_DAYS,
        region: str | None = None,
        endpoint_url: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        match = _PLACE.fullmatch(place)
        if not match:
            raise InvalidArgument(f"{place!r} is not a place in S3; want s3://bucket/prefix")
        if not 1 <= retain_days <= 36500:
            raise InvalidArgument(f"retain_days is {retain_days}; want 1 to 36500")
        self._bucket, prefix = match[1], (match[2] or "").strip("/")
        self.place = f"s3://{self._bucket}/{prefix}".rstrip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._retain = timedelta(days=retain_days)
        self._newest = 0
        self._client, self._errors = _client(region, endpoint_url, timeout)

    def submit(self, submission: Submission) -> Evidence:
        """Write the checkpoint as a locked object."""
        tree, now = submission.tree, datetime.fromtimestamp(submission.now / 1e6, UTC)
        folder = self._folder(tree.origin)
        newest = self._find_newest(folder, tree.size)
        if newest:
            self._check_continues(self._get(_key(folder, newest)), submission)
        key, data = _key(folder, tree.size), submission.checkpoint.to_text().encode()
        fresh = newest < tree.size and self._put(key, data, now + self._retain)
        stored = self._get(key)
        note = submission.checkpoint
        if fresh and stored.data != data:
            raise AnchorUnavailable(f"{self.place}: {key} was overwritten while it was being written")
        if not fresh:
            note = self._check_continues(stored, submission)
        self._check_locked(stored, key, now + self._retain - (timedelta() if fresh else _SLACK))
        if fresh and abs(stored.modified - now) > timedelta(seconds=CLOCK_TOLERANCE_SECONDS):
            raise AnchorUnavailable(
                f"{self.place} gives the time {stored.modified:%FT%TZ}, and this machine {now:%FT%TZ}; one of the two "
                "clocks is wrong, and records carry this machine's time"
            )
        self._newest = tree.size
        proof = {
            "bucket": self._bucket,
            "key": key,
            "retained_until": _microseconds(stored.retained_until),
            "version": stored.version,
        }
        return Evidence(self.kind, self.place, note, _microseconds(stored.modified), proof)

    def confirm(self, evidence: Evidence, keys: tuple[NoteKey, ...]) -> Checkpoint:
        """Read the locked object again and compare it with the evidence."""
        tree = evidence.check_signed(keys)
        key, version = evidence.proof.get("key"), evidence.proof.get("version")
        if evidence.proof.get("bucket") != self._bucket or key != _key(self._folder(tree.origin), tree.size):
            raise CorruptFile(f"the evidence for {tree.size} records names no object of {self.place}")
        try:
            stored, current = self._get(key, str(version)), self._get(key)
        except _GoneError as gone:
            raise CorruptFile(f"{self.place}: {key} is gone, though it was locked: {gone}") from gone
        facts = (stored.data, _microseconds(stored.modified), _microseconds(stored.retained_until))
        stated = (evidence.checkpoint.to_text().encode(), evidence.seen, evidence.proof.get("retained_until"))
        if facts != stated:
            raise CorruptFile(f"{self.place}: {key} is not what the evidence says: other bytes, time or lock")
        if current.version != version:
            raise CorruptFile(
                f"{self.place}: {key} was overwritten by version {current.version}; the locked one is {version}"
            )
        self._check_locked(stored, key, datetime.min.replace(tzinfo=UTC))
        return tree

    def _check_continues(self, stored: _Stored, submission: Submission) -> Note:
        """Check that the log continues a checkpoint found in the bucket; only the log's own signature proves a fork."""
        try:
            note = Note.parse(stored.data.decode("utf-8"))
            known = Evidence(self.kind, self.place, note, 0).check_signed(submission.keys)
        except (UnicodeDecodeError, CorruptFile) as error:
            raise AnchorUnavailable(
                f"{self.place} holds an object that is not a checkpoint of this log: {error}; find out who writes "
                "there, or use another prefix"
            ) from error
        check_known(known, submission, self.place)
        return note

    def _check_locked(self, stored: _Stored, key: str, until: datetime) -> None:
        if stored.mode != "COMPLIANCE" or stored.version in ("", "null"):
            raise AnchorUnavailable(
                f"{self.place}: {key} is not locked (mode {stored.mode or 'none'}, version "
                f"{stored.version or 'none'}); the bucket needs versioning and Object Lock in COMPLIANCE mode"
            )
        if stored.retained_until < until.replace(microsecond=0):
            raise AnchorUnavailable(
                f"{self.place}: {key} is locked until {stored.retained_until:%FT%TZ}; want {until:%FT%TZ}"
            )

    def _find_newest(self, folder: str, size: int) -> int:
        """Find the size of the largest tree in the bucket; 0 if it is empty."""
        low, high = self._newest, size
        if not self._after(folder, low):
            return low
        if beyond := self._after(folder, high):
            return beyond
        while low < high:  # the newest size is in low..high
            middle = (low + high) // 2
            if found := self._after(folder, middle):
                low = found
            else:
                high = middle
        return low

    def _after(self, folder: str, size: int) -> int:
        """Return the smallest size in the bucket above ``size``, or 0."""
        answer = self._call("list_objects_v2", Prefix=folder, StartAfter=_key(folder, size), MaxKeys=1)
        for item in answer.get("Contents", ()):
            name = item["Key"].removeprefix(folder)
            if not (len(name) == 20 and name.isascii() and name.isdecimal()):
                raise AnchorUnavailable(
                    f"{self.place}: {item['Key']} is not a checkpoint; find out who writes there"
                )
            return int(name)
        return 0

    def _put(self, key: str, data: bytes, until: datetime) -> bool:
        """Create the object; return False if one of that name exists."""
        try:
            self._call(
                "put_object",
                Key=key,
                Body=data,
                ContentType="text/plain; charset=utf-8",
                IfNoneMatch="*",
                ObjectLockMode="COMPLIANCE",
                ObjectLockRetainUntilDate=until,
                ChecksumAlgorithm="SHA256",
                ChecksumSHA256=b64encode(hashlib.sha256(data).digest()).decode(),
            )
        except _ExistsError:
            return False
        return True

    def _get(self, key: str, version: str | None = None) -> _Stored:
        answer = self._call("get_object", Key=key, **({} if version is None else {"VersionId": version}))
        data = answer["Body"].read(_MAX_OBJECT_BYTES + 1)
        return _Stored(
            data,
            answer.get("VersionId", ""),
            answer.get("ObjectLockMode", ""),
            answer.get("ObjectLockRetainUntilDate", datetime.min.replace(tzinfo=UTC)),
            answer["LastModified"],
        )

    def _call(self, operation: str, **parameters: Any) -> Any:
        try:
            return getattr(self._client, operation)(Bucket=self._bucket, **parameters)
        except self._errors.ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            if code in ("PreconditionFailed", "412"):
                raise _ExistsError from error
            if code in ("NoSuchKey", "NoSuchVersion", "404"):
                raise _GoneError(f"{self.place}: {error}") from error
            raise AnchorUnavailable(f"{self.place}: {error}{_HINTS.get(code, '')}") from error
        except (self._errors.BotoCoreError, OSError) as error:
            raise AnchorUnavailable(
                f"{self.place} cannot be reached: {error}; it will be tried again"
            ) from error

    def _folder(self, origin: str) -> str:
        return f"{self._prefix}{hashlib.sha256(origin.encode()).hexdigest()}/"


class _ExistsError(AnchorUnavailable):
    pass


class _GoneError(AnchorUnavailable):
    pass


def _key(folder: str, size: int) -> str:
    return f"{folder}{size:020d}"


def _microseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _client(region: str | None, endpoint_url: str | None, timeout: float) -> tuple[Any, Any]:
    try:
        import boto3
        from botocore import exceptions
        from botocore.config import Config
    except ImportError as absent:
        raise MissingExtra("S3 needs boto3; run: pip install 'carag-engine[anchors]'") from absent
    config = Config(
        connect_timeout=timeout,
        read_timeout=timeout,
        retries={"total_max_attempts": 2, "mode": "standard"},
    )
    try:
        session = boto3.Session()
        return session.client("s3", region_name=region, endpoint_url=endpoint_url, config=config), exceptions
    except (exceptions.BotoCoreError, ValueError) as error:
        raise InvalidArgument(f"S3 cannot be used as configured: {error}") from error
