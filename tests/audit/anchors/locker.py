"""A double of S3 with Object Lock on the loopback interface, as strict as the service where it matters here.

Every request is read off the wire by botocore's own model of S3 (operation, members, types, nothing unknown)
and its signature recomputed (SigV4). What is answered is held against the model too. The bucket behaves as
documented: versions, ``If-None-Match: *``, a lock needs a checksum and a date to come, COMPLIANCE cannot be
deleted.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import re
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.session import get_session
from botocore.validate import ParamValidator

from tests.audit.anchors.served import served

REGION = "eu-west-3"
ACCESS_KEY = "NOBODYS-KEY-ID"
SIGNING_KEY = "signs in these tests only"
OPERATIONS = {("PUT", True): "PutObject", ("GET", True): "GetObject", ("GET", False): "ListObjectsV2"}
OF_THE_CLIENT = {"x-amz-date", "x-amz-content-sha256", "x-amz-user-agent"}


class Refused(Exception):
    """An error as S3 sends it."""

    def __init__(self, status, code, message=""):
        super().__init__(message or code)
        self.status, self.code = status, code


class Locker:
    """One bucket. ``spoil`` may change what is stored or answered, as a bucket set up wrongly does."""

    def __init__(self):
        self.empty(datetime.datetime.now(datetime.UTC))
        self._model = get_session().get_service_model("s3")

    def empty(self, now):
        self.now, self.clock_off = now, datetime.timedelta()
        self.bucket, self.locking, self.denied = "anchors", True, set()
        self.objects, self.requests, self.faults = {}, [], []
        self.spoil = lambda version: version

    # -- the operations

    def put_object(self, p):
        key, body = p["Key"], p["Body"]
        if p.get("IfNoneMatch", "*") != "*":
            raise Refused(501, "NotImplemented")
        if "IfNoneMatch" in p and self.objects.get(key):
            raise Refused(412, "PreconditionFailed")
        if "ObjectLockMode" in p:
            if not self.locking:
                raise Refused(400, "InvalidRequest", "Bucket is missing Object Lock Configuration")
            if p.get("ChecksumSHA256") is None:
                raise Refused(400, "InvalidRequest", "Content-MD5 or a checksum is required")
            if p["ObjectLockRetainUntilDate"] <= self.now:
                raise Refused(400, "InvalidArgument", "The retain until date must be in the future!")
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        if p.get("ChecksumSHA256", digest) != digest:
            raise Refused(400, "BadDigest")
        version = {
            "Body": body,
            "VersionId": f"v{sum(map(len, self.objects.values()))}",
            "LastModified": (self.now + self.clock_off).replace(microsecond=0),
            "ObjectLockMode": p.get("ObjectLockMode"),
            "ObjectLockRetainUntilDate": p.get("ObjectLockRetainUntilDate"),
        }
        self.objects.setdefault(key, []).append(self.spoil(version))
        return {"VersionId": version["VersionId"]}

    def get_object(self, p):
        versions = self.objects.get(p["Key"], [])
        wanted = [v for v in versions if p.get("VersionId") in (None, v.get("VersionId"))]
        if not wanted:
            raise Refused(404, "NoSuchVersion" if versions else "NoSuchKey")
        return wanted[-1]

    def list_objects_v2(self, p):
        names = sorted(n for n in self.objects if self.objects[n] and n.startswith(p.get("Prefix", "")))
        names = [name for name in names if name > p.get("StartAfter", "")]
        shown = names[: p.get("MaxKeys", 1000)]
        return {"KeyCount": len(shown), "IsTruncated": len(shown) < len(names), "names": shown}

    # -- the wire

    def parse(self, method, target, headers, body):
        """Read the parameters of a request by the service's model; ValueError where they differ from it."""
        parts = urlsplit(target)
        _, bucket, *rest = unquote(parts.path).split("/", 2)
        key = rest[0] if rest else ""
        name = OPERATIONS[method, bool(key)]
        query = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        if name == "ListObjectsV2" and query.pop("list-type", None) != "2":
            raise ValueError("want list-type=2")
        query.pop("x-id", None)
        shape = self._model.operation_model(name).input_shape
        found, known = {"Bucket": bucket, **({"Key": key} if key else {})}, set(OF_THE_CLIENT)
        for member, described in shape.members.items():
            where, wire = described.serialization.get("location"), described.serialization.get("name", "")
            source = {"header": headers, "querystring": query}.get(where, {})
            known.add(wire.lower() if where == "header" else "")
            if wire in source:
                found[member] = _typed(described.type_name, source[wire])
            query.pop(wire if where == "querystring" else "", None)
        extra = {header.lower() for header in headers if header.lower().startswith("x-amz-")} - known
        if extra or query:
            raise ValueError(f"{name} has no {sorted(extra)} {sorted(query)}")
        if name == "PutObject":
            found["Body"] = body
        report = ParamValidator().validate(found, shape)
        if report.has_errors():
            raise ValueError(f"{name}: {report.generate_report()}")
        if bucket != self.bucket:
            raise Refused(404, "NoSuchBucket")
        return name, found

    def answer(self, name, found):
        self.requests.append((name, found))
        if name in self.denied:
            raise Refused(403, "AccessDenied")
        operations = {
            "PutObject": self.put_object,
            "GetObject": self.get_object,
            "ListObjectsV2": self.list_objects_v2,
        }
        answer = operations[name](found)
        self._check_answer(name, answer)
        return answer

    def _check_answer(self, name, answer):
        shape = self._model.operation_model(name).output_shape
        plain = {key: value for key, value in answer.items() if key in shape.members and value is not None}
        report = ParamValidator().validate(plain, shape)
        if report.has_errors():
            self.faults.append(f"{name} never answers so: {report.generate_report()}")

    def serve(self):
        return served(self.handle)

    def handle(self, method, target, headers, body):
        try:
            _check_signature(method, target, headers, body)
            name, found = self.parse(method, target, headers, body)
            return 200, *_wire(name, self.answer(name, found))
        except Refused as refusal:
            text = f"<Error><Code>{refusal.code}</Code><Message>{escape(str(refusal))}</Message></Error>"
            return refusal.status, {"Content-Type": "application/xml"}, text.encode()
        except (ValueError, KeyError) as fault:
            self.faults.append(repr(fault))
            return 400, {}, b"<Error><Code>MalformedRequest</Code></Error>"


def _typed(kind, text):
    if kind == "timestamp":
        return datetime.datetime.fromisoformat(text)
    if kind in ("integer", "long"):
        return int(text)
    return {"true": True, "false": False}[text] if kind == "boolean" else text


def _wire(name, answer):
    if name == "ListObjectsV2":
        items = "".join(f"<Contents><Key>{escape(key)}</Key></Contents>" for key in answer["names"])
        counts = f"<KeyCount>{answer['KeyCount']}</KeyCount>"
        xml = f"<ListBucketResult>{counts}{items}</ListBucketResult>"
        return {"Content-Type": "application/xml"}, xml.encode()
    headers = {"x-amz-version-id": answer.get("VersionId")}
    if name == "GetObject":
        headers["Last-Modified"] = answer["LastModified"].strftime("%a, %d %b %Y %H:%M:%S GMT")
        headers["x-amz-object-lock-mode"] = answer.get("ObjectLockMode")
        if answer.get("ObjectLockRetainUntilDate"):
            until = answer["ObjectLockRetainUntilDate"].astimezone(datetime.UTC)
            headers["x-amz-object-lock-retain-until-date"] = until.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {key: value for key, value in headers.items() if value}, answer.get("Body", b"")


def _check_signature(method, target, headers, body):
    form = r"AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})"
    match = re.fullmatch(form, headers.get("Authorization", ""))
    if not match:
        raise ValueError("the request is not signed")
    date = headers["X-Amz-Date"]
    if f"{ACCESS_KEY}/{date[:8]}/{REGION}/s3/aws4_request" != match[1]:
        raise ValueError(f"credential scope {match[1]}")
    if headers["X-Amz-Content-SHA256"] != hashlib.sha256(body).hexdigest():
        raise ValueError("the signed digest is not the body's")
    signed = match[2].split(";")
    sent = {header.lower() for header in headers if header.lower().startswith("x-amz-")} | {"host"}
    if not sent <= set(signed):
        raise ValueError(f"unsigned headers {sent - set(signed)}")
    request = AWSRequest(method, f"http://{headers['Host']}{target}", {n: headers[n] for n in signed}, body)
    request.context["timestamp"] = date
    auth = S3SigV4Auth(Credentials(ACCESS_KEY, SIGNING_KEY), "s3", REGION)
    computed = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    if computed != match[3]:
        raise ValueError(f"the signature does not match for {method} {quote(target)}")
