"""A double of Amazon Bedrock on the loopback interface, as strict as the service.

Every request is checked twice before it is answered: against botocore's own service model (the operation
exists, required members are there, types fit, nothing unknown is sent) and for its signature (SigV4,
recomputed from the request as received). What the double answers is checked against the model's output
shape too, so it cannot drift into a form that Bedrock never sends.
"""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REGION = "eu-west-3"
ACCESS_KEY = "NOBODYS-KEY-ID"
SIGNING_KEY = "nobody signs with this outside these tests"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SIGNING_KEY,
    "AWS_CONFIG_FILE": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""What stands in the environment of a process that asks the double: credentials that are nobody's."""
UNSET = ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_BEARER_TOKEN_BEDROCK")
"""What does not: nobody's own credentials may sign what the double is sent."""


@dataclass(frozen=True)
class Reply:
    """One answer: JSON made from the request, an error, raw bytes, or (none of these) silence."""

    make: Callable[[dict[str, Any]], Any] | None = None
    error: str = ""
    status: int = 200
    raw: bytes | None = None


@dataclass
class Double:
    """The service's other end: a script of replies (the last repeats) and the requests in order."""

    endpoint_url: str
    script: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def answers(self, make: Callable[[dict[str, Any]], Any]) -> None:
        """Answer the next request by what this makes of it."""
        self.script.append(Reply(make))

    def fails(self, error: str, status: int) -> None:
        """Answer it with an error of the service."""
        self.script.append(Reply(error=error, status=status))

    def sends(self, raw: bytes) -> None:
        """Answer it with these bytes, whatever they are."""
        self.script.append(Reply(raw=raw))

    def stays_silent(self) -> None:
        """Do not answer it."""
        self.script.append(Reply())

    def next_reply(self) -> Reply:
        """Return what the script says next; its last line is for all that follow."""
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


class ServiceModel:
    """botocore's description of ``bedrock-runtime``, used to judge what arrives and what is answered."""

    def __init__(self) -> None:
        from botocore.session import get_session
        from botocore.validate import ParamValidator

        self._model = get_session().get_service_model("bedrock-runtime")
        self._validator = ParamValidator()

    def parse(self, method: str, path: str, headers: Any, body: bytes) -> tuple[str, dict[str, Any]]:
        """Find the operation and read its parameters off the wire; raise ValueError where they differ."""
        for name in ("InvokeModel", "Converse"):
            operation = self._model.operation_model(name)
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", operation.http["requestUri"])
            match = re.fullmatch(pattern, path)
            if match and method == operation.http["method"]:
                break
        else:
            raise ValueError(f"no operation for {method} {path}")
        shape = operation.input_shape
        parameters: dict[str, Any] = {}
        for member, described in shape.members.items():
            wire = described.serialization
            if wire.get("location") == "uri":
                parameters[member] = unquote(match[wire["name"]])
            elif wire.get("location") == "header" and wire["name"] in headers:
                parameters[member] = headers[wire["name"]]
        payload = shape.serialization.get("payload")
        if payload:
            parameters[payload] = body
        else:
            parameters |= json.loads(body)
        if faults := self._faults(parameters, shape):
            raise ValueError(f"{name}: {faults}")
        return name, parameters

    def faults_of_answer(self, name: str, answer: dict[str, Any]) -> list[str]:
        """Tell where an answer has not the form of the service's."""
        return self._faults(answer, self._model.operation_model(name).output_shape)

    def has_error(self, name: str, code: str) -> bool:
        """Tell whether an operation may fail with a code."""
        return code in {shape.name for shape in self._model.operation_model(name).error_shapes}

    def _faults(self, value: dict[str, Any], shape: Any) -> list[str]:
        report = self._validator.validate(value, shape)
        return [report.generate_report()] if report.has_errors() else []


def signature_of(method: str, url: str, headers: Any, body: bytes) -> tuple[str, str]:
    """Return the signature a request carries, and the one it should carry (AWS Signature Version 4)."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    form = r"AWS4-HMAC-SHA256 Credential=([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]{64})"
    match = re.fullmatch(form, headers.get("Authorization", ""))
    if not match:
        raise ValueError("the request is not signed")
    date = headers["X-Amz-Date"]
    if f"{ACCESS_KEY}/{date[:8]}/{REGION}/bedrock/aws4_request" != match[1]:
        raise ValueError(f"credential scope {match[1]}")
    signed = match[2].split(";")
    if not {"host", "x-amz-date"} <= set(signed):
        raise ValueError(f"signed headers {signed}")
    request = AWSRequest(method, url, {name: headers[name] for name in signed}, body)
    request.context["timestamp"] = date
    auth = SigV4Auth(Credentials(ACCESS_KEY, SIGNING_KEY), "bedrock", REGION)
    to_sign = auth.string_to_sign(request, auth.canonical_request(request))
    return match[3], auth.signature(to_sign, request)


def check_embedding(parameters: dict[str, Any]) -> None:
    """Hold a body that botocore cannot see into to the documented limits of its model."""
    sent = json.loads(parameters["body"])
    if parameters["modelId"] == "amazon.titan-embed-text-v2:0":
        if (
            {"inputText", "dimensions", "normalize"} != set(sent)
            or not isinstance(sent["inputText"], str)
            or not 1 <= len(sent["inputText"]) <= 8192
            or sent["dimensions"] not in (256, 512, 1024)
            or sent["normalize"] is not True
        ):
            raise ValueError("the body is not what amazon.titan-embed-text-v2:0 takes")
        return
    wrong = (
        {"texts", "input_type", "truncate"} != set(sent)
        or not 1 <= len(sent["texts"]) <= 96
        or not all(isinstance(text, str) and 1 <= len(text) <= 2048 for text in sent["texts"])
        or sent["input_type"] not in ("search_document", "search_query")
        or sent["truncate"] != "NONE"
    )
    if wrong:
        raise ValueError("the body is not what cohere.embed-multilingual-v3 takes")


def handler_for(double: Double, service: ServiceModel) -> type[BaseHTTPRequestHandler]:
    """Make the handler of a double's requests."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                name, request = self._checked(body)
            except (ValueError, KeyError) as fault:
                double.faults.append(str(fault))
                self._send(400, {"message": str(fault)}, "ValidationException")
                return
            double.requests.append(request)
            reply = double.next_reply()
            if reply.make:
                answer = reply.make(request)
                if name == "Converse":
                    double.faults += service.faults_of_answer(name, answer)
                self._send(200, answer)
            elif reply.raw is not None:
                self._send(200, reply.raw)
            elif reply.error:
                if not service.has_error(name, reply.error):
                    double.faults.append(f"{name} has no error {reply.error}")
                self._send(reply.status, {"message": "said the double"}, reply.error)
            else:
                double.released.wait(10)
                self.close_connection = True

        def _checked(self, body: bytes) -> tuple[str, dict[str, Any]]:
            url = double.endpoint_url + self.path
            carried, computed = signature_of("POST", url, self.headers, body)
            if carried != computed:
                raise ValueError("the signature does not match")
            name, request = service.parse("POST", self.path, self.headers, body)
            if name == "InvokeModel":
                check_embedding(request)
            return name, request

        def _send(self, status: int, content: Any, error: str = "") -> None:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if error:
                self.send_header("x-amzn-ErrorType", error)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Keep the test output clean."""

    return Handler


@contextmanager
def serving(service: ServiceModel) -> Iterator[Double]:
    """Serve a double on a free port of the loopback interface."""
    double = Double("")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_for(double, service))
    double.endpoint_url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield double
    finally:
        double.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
