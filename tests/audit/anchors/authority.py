"""A timestamp authority on this machine: two certificates and ``openssl ts -reply`` behind HTTP."""

from __future__ import annotations

import datetime
import subprocess

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.audit.anchors.served import served

CONFIG = """
[tsa]
default_tsa = t
[t]
serial = {home}/serial
signer_cert = {home}/tsa.pem
signer_key = {home}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = {digests}
"""


class Authority:
    """Certificates in a directory, and replies made with them."""

    def __init__(self, home):
        home.mkdir(parents=True)
        self.home = home
        root_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        self.root = _certificate("Root", root_key, root_key, "Root")
        own = _certificate("TSA", key, root_key, "Root", purpose=ExtendedKeyUsageOID.TIME_STAMPING)
        (home / "ca.pem").write_bytes(self.root)
        (home / "tsa.pem").write_bytes(own)
        (home / "tsa.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        (home / "serial").write_text("01")

    def reply(self, query, digests="sha256"):
        (self.home / "query").write_bytes(query)
        (self.home / "config").write_text(CONFIG.format(home=self.home, digests=digests))
        command = ["openssl", "ts", "-reply", "-config", "config", "-queryfile", "query", "-out", "reply"]
        subprocess.run(command, cwd=self.home, check=True, capture_output=True)
        return (self.home / "reply").read_bytes()

    def serve(self, change=lambda query, answer: answer(query)):
        """Serve timestamps; ``change(query, answer)`` may return other bytes, or (status, type, bytes)."""

        def answer(_method, _target, headers, query):
            sent = change(query, self.reply)
            status, kind, data = (
                sent if isinstance(sent, tuple) else (200, "application/timestamp-reply", sent)
            )
            right = headers["Content-Type"] == "application/timestamp-query"
            return status if right else 415, {"Content-Type": kind}, data

        return served(answer)


def _certificate(name, key, issuer_key, issuer, purpose=None):
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, cn)]) for cn in (name, issuer)]
    now = datetime.datetime.now(datetime.UTC)
    authority = x509.BasicConstraints(ca=purpose is None, path_length=None)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(names[0])
        .issuer_name(names[1])
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(authority, critical=True)
        .add_extension(identifier, critical=False)
    )
    if purpose is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
