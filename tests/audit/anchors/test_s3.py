"""S3 Object Lock against a double that holds every request to botocore's own model of the service."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import shutil
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carag.audit.anchors import s3 as module
from carag.audit.anchors.evidence import Evidence
from carag.audit.anchors.s3 import S3Anchor
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.keys import SigningKey
from carag.errors import AnchorUnavailable, CorruptFile, InvalidArgument, MissingExtra
from tests.sizes import examples

pytest.importorskip("boto3", reason="the extra 'anchors' is not installed")


@pytest.fixture(scope="module")
def s3_model(outside):
    return outside.double("locker")


@pytest.fixture(scope="module")
def credentials(s3_model):
    with pytest.MonkeyPatch.context() as patched:
        for name, value in (
            ("AWS_ACCESS_KEY_ID", s3_model.ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", s3_model.SIGNING_KEY),
            ("AWS_CONFIG_FILE", "/nonexistent"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ):
            patched.setenv(name, value)
        for name in ("SESSION_TOKEN", "PROFILE", "REGION", "DEFAULT_REGION", "ENDPOINT_URL"):
            patched.delenv(f"AWS_{name}", raising=False)
        # Making a client reads the whole model of S3, a second each; one a place is enough for these tests.
        patched.setattr(module, "_client", functools.cache(module._client))
        yield


@pytest.fixture(scope="module")
def bucket(s3_model, credentials, outside):
    locker = s3_model.Locker()
    with outside.running(locker.serve()) as url:
        yield SimpleNamespace(locker=locker, url=url)


@pytest.fixture
def s3(bucket, s3_model, outside):
    """An empty bucket, and ``s3.anchor()`` for an anchor in it that remembers nothing."""
    bucket.locker.empty(datetime.datetime.fromtimestamp(outside.NOW, datetime.UTC))

    def anchor(place="s3://anchors/carag", **changes):
        return S3Anchor(place, region=s3_model.REGION, endpoint_url=bucket.url, **changes)

    yield SimpleNamespace(locker=bucket.locker, anchor=anchor)
    assert [] == bucket.locker.faults


@pytest.fixture
def log(build, outside, tmp_path):
    with build.open_log(tmp_path / "log") as log:
        yield outside.grow(log, 5)


def test_a_checkpoint_is_locked_for_years(log, s3, outside):
    """Create-only, COMPLIANCE, with checksum and date; read back; the evidence is confirmed by the bucket."""
    submission, anchor = outside.submission(log), s3.anchor()
    evidence = Evidence.parse(anchor.submit(submission).to_bytes())
    [put] = [found for name, found in s3.locker.requests if name == "PutObject"]
    assert put["IfNoneMatch"] == "*"
    assert put["ObjectLockMode"] == "COMPLIANCE"
    assert put["ObjectLockRetainUntilDate"] == s3.locker.now + datetime.timedelta(days=2557)
    assert put["Body"] == log.checkpoint().encode()
    assert put["Key"].endswith(f"/{5:020d}")
    assert evidence.seen == outside.NOW * 1_000_000
    assert anchor.confirm(evidence, submission.keys).size == 5


def test_a_growing_log_leaves_a_trail(log, s3, outside):
    """One object a size; the same size twice is one object and confirmed both times."""
    anchor = s3.anchor()
    for count in (0, 3, 0, 1):
        assert anchor.submit(outside.submission(outside.grow(log, count))).tree.size == log.size
    assert sorted(int(key[-20:]) for key in s3.locker.objects) == [5, 8, 9]
    assert all(len(versions) == 1 for versions in s3.locker.objects.values())
    assert s3.anchor("s3://anchors").submit(outside.submission(log)).place == "s3://anchors"


@given(st.sets(st.integers(1, 400)), st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=examples(200), deadline=None)
def test_law_the_newest_is_found(sizes, size, known):
    """The search by halves finds what a full listing would, in at most 2 + log2(size) requests."""
    anchor = S3Anchor.__new__(S3Anchor)
    asked = []

    def after(_, low):
        asked.append(low)
        return min((s for s in sizes if s > low), default=0)

    anchor._after = after
    anchor._newest = max((s for s in sizes if s <= min(known, size)), default=0)
    found = anchor._find_newest("", size)
    beyond = [s for s in sizes if s > size]
    assert found == (min(beyond) if beyond else max(sizes, default=0))
    assert len(asked) <= 2 + size.bit_length()


# -- what it notices


def test_a_rolled_back_log_is_noticed(log, s3, outside, build, tmp_path):
    """Put back to an earlier copy, the log is shorter than the bucket's newest checkpoint."""
    s3.anchor().submit(outside.submission(log))
    shutil.copytree(tmp_path / "log", tmp_path / "copy")
    s3.anchor().submit(outside.submission(outside.grow(log, 4)))
    with build.open_log(tmp_path / "copy") as restored:
        with pytest.raises(CorruptFile, match="rolled back"):
            s3.anchor().submit(outside.submission(restored))
        for count in (4, 4):  # as long as before, then longer: it still does not continue what is locked
            with pytest.raises(CorruptFile, match="forked"):
                s3.anchor().submit(outside.submission(outside.grow(restored, count)))


def test_an_overwritten_object_is_noticed(log, s3, outside):
    """Somebody writes a newer version over the locked one: the locked one proves it."""
    submission, anchor = outside.submission(log), s3.anchor()
    evidence = anchor.submit(submission)
    [versions] = s3.locker.objects.values()
    versions.append({**versions[0], "Body": b"another", "VersionId": "v9"})
    with pytest.raises(CorruptFile, match="overwritten by version v9"):
        anchor.confirm(evidence, submission.keys)
    with pytest.raises(AnchorUnavailable, match="not a checkpoint of this log"):
        s3.anchor().submit(submission)


@pytest.mark.parametrize(
    "field", ["Body", "LastModified", "ObjectLockRetainUntilDate", "ObjectLockMode", None]
)
def test_a_changed_or_missing_object_confirms_nothing(log, s3, outside, field):
    """Bytes, time, lock: each is compared with the evidence; gone is gone."""
    submission, anchor = outside.submission(log), s3.anchor()
    evidence = anchor.submit(submission)
    [versions] = s3.locker.objects.values()
    if field is None:
        versions.clear()
    else:
        day = datetime.timedelta(days=1)
        versions[0][field] = {"Body": b"x", "ObjectLockMode": "GOVERNANCE"}.get(field) or versions[0][
            field
        ] - day
    with pytest.raises((CorruptFile, AnchorUnavailable)):
        anchor.confirm(evidence, submission.keys)


def test_evidence_of_elsewhere_is_refused(log, s3, outside):
    """Another key, another bucket, a checkpoint that the log did not sign."""
    submission, anchor = outside.submission(log), s3.anchor()
    evidence = anchor.submit(submission)
    stranger = SigningKey(log.origin, b"s" * 32).sign(evidence.checkpoint.text)
    for wrong in (
        dataclasses.replace(evidence, proof={**evidence.proof, "key": "another"}),
        dataclasses.replace(evidence, proof={**evidence.proof, "bucket": "another"}),
        dataclasses.replace(evidence, proof={**evidence.proof, "version": "v7"}),
        dataclasses.replace(evidence, checkpoint=stranger),
        dataclasses.replace(evidence, seen=evidence.seen + 1),
    ):
        with pytest.raises(CorruptFile):
            anchor.confirm(wrong, submission.keys)


# -- what does not confirm


def without(field, value=None):
    return lambda version: {**version, field: value}


SPOILED = {
    "not locked": (without("ObjectLockMode"), "not locked"),
    "locked the weaker way": (without("ObjectLockMode", "GOVERNANCE"), "not locked"),
    "without versions": (without("VersionId"), "not locked"),
    "without a version's name": (without("VersionId", "null"), "not locked"),
    "without an end": (without("ObjectLockRetainUntilDate"), "locked until"),
    "with other bytes": (without("Body", b"other"), "overwritten"),
    "locked for a day": (
        lambda v: {**v, "ObjectLockRetainUntilDate": v["LastModified"] + datetime.timedelta(days=1)},
        "locked until",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_an_object_that_is_not_locked_is_no_confirmation(log, s3, outside, name):
    """What the bucket kept is read back, not believed."""
    s3.locker.spoil, reason = SPOILED[name]
    with pytest.raises(AnchorUnavailable, match=reason):
        s3.anchor().submit(outside.submission(log))


@pytest.mark.parametrize("seconds", [-301, 301])
def test_clocks_that_disagree_are_said(log, s3, outside, seconds):
    """S3's clock and ours differ by minutes: one is wrong."""
    s3.locker.clock_off = datetime.timedelta(seconds=seconds)
    with pytest.raises(AnchorUnavailable, match="clocks is wrong"):
        s3.anchor().submit(outside.submission(log))


@pytest.mark.parametrize("operation", ["PutObject", "GetObject", "ListObjectsV2"])
def test_a_missing_right_is_said(log, s3, outside, operation):
    """Access denied names where the rights are written down."""
    s3.locker.denied.add(operation)
    with pytest.raises(AnchorUnavailable, match="rights it needs"):
        s3.anchor().submit(outside.submission(log))


def test_a_bucket_without_lock_or_none_is_said(log, s3, outside):
    """S3's own refusals come through with what to do."""
    with pytest.raises(AnchorUnavailable, match="NoSuchBucket"):
        s3.anchor("s3://elsewhere/x").submit(outside.submission(log))
    s3.locker.locking = False
    with pytest.raises(AnchorUnavailable, match="needs versioning and Object Lock"):
        s3.anchor().submit(outside.submission(log))


@pytest.mark.parametrize("data", [b"rubbish", b"\xff", None])
def test_who_writes_beside_cannot_convict_the_log(log, s3, outside, data):
    """A larger checkpoint that the log's key did not sign proves no rollback; it is said and nothing more."""
    forged = SigningKey(log.origin, b"s" * 32).sign(Checkpoint(log.origin, 9, b"r" * 32).to_text())
    s3.anchor().submit(outside.submission(log))
    [key] = s3.locker.objects
    s3.locker.objects[key[:-1] + "9"] = [
        {**s3.locker.objects[key][0], "Body": data or forged.to_text().encode()}
    ]
    with pytest.raises(AnchorUnavailable, match="who writes"):
        s3.anchor().submit(outside.submission(log))
    s3.locker.objects[key + "x"] = s3.locker.objects.pop(key[:-1] + "9")
    with pytest.raises(AnchorUnavailable, match="who writes"):
        s3.anchor().submit(outside.submission(log))


def test_no_connection_is_reported(log, credentials, outside):
    """No connection: unavailable, soon."""
    anchor = S3Anchor("s3://anchors/x", region="eu-west-3", endpoint_url="http://127.0.0.1:9", timeout=1)
    with pytest.raises(AnchorUnavailable, match="cannot be reached"):
        anchor.submit(outside.submission(log))


@pytest.mark.parametrize("place", ["", "anchors", "s3://", "s3://A_B/x", "https://anchors.s3.example/x"])
def test_a_place_is_a_bucket(place):
    """Anything else is the caller's mistake."""
    with pytest.raises(InvalidArgument, match="s3://bucket/prefix"):
        S3Anchor(place)


@pytest.mark.parametrize("days", [0, -1, 36501])
def test_retention_is_some_days(days):
    """From one day to a hundred years."""
    with pytest.raises(InvalidArgument, match="days"):
        S3Anchor("s3://anchors/x", retain_days=days)


def test_without_boto3_the_error_names_the_extra(monkeypatch):
    """The package is optional."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with contextlib.suppress(ImportError), pytest.raises(MissingExtra, match=r"carag-engine\[anchors\]"):
        S3Anchor("s3://anchors/x")


def test_the_double_refuses_what_s3_would(s3, s3_model):
    """The checker can fail: an unknown header, a wrong type, a missing checksum."""
    locker = s3.locker
    with pytest.raises(ValueError, match="has no"):
        locker.parse("PUT", "/anchors/k", {"x-amz-object-lok-mode": "COMPLIANCE"}, b"")
    with pytest.raises(ValueError, match="invalid literal"):
        locker.parse("GET", "/anchors?list-type=2&max-keys=many", {}, b"")
    until = locker.now + datetime.timedelta(days=1)
    locked = {"Key": "k", "Body": b"x", "ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until}
    with pytest.raises(s3_model.Refused, match="checksum"):
        locker.put_object(locked)
