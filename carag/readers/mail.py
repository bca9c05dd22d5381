"""Read an e-mail: its heads, its text, and the text of its attachments, each by the reader of its own format.

Text that is stated twice is read once, plain rather than as HTML. What is not read is named as left out: pictures,
encrypted and signed parts that hide their text, and attachments that have another format or cannot be read.
"""

from __future__ import annotations

import zlib
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, Final
from zipfile import BadZipFile

from carag.errors import CaragError
from carag.limits import quoted, shown
from carag.readers.formats import reader_of
from carag.readers.html import ENCODINGS, read_markup
from carag.readers.outcome import Content, broken, problem_of, too_large
from carag.readers.plain import decoded

MAX_NESTING: Final = 16
"""Greatest depth of parts within parts; an e-mail that is attached to another adds about three levels."""
_HEADS: Final = ("From", "To", "Cc", "Date", "Subject")
_CODINGS: Final = {"", "7bit", "8bit", "binary", "quoted-printable", "base64"}
_SEALED: Final = "encrypted, or signed in a form that hides its text"
_SIGNATURE: Final = "a signature, which was not checked"
_NOT_READ: Final = {
    **dict.fromkeys(("multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"), _SEALED),
    **dict.fromkeys((f"application/{one}-signature" for one in ("pkcs7", "x-pkcs7", "pgp")), _SIGNATURE),
}
_PREFERRED: Final = ("text/plain", "text/html", "multipart/related", "multipart/mixed")


def read_eml(content: bytes) -> Content:
    r"""Return the text of an e-mail and its attachments; its title is the subject.

    The heads are text and not metadata, because a sender may write anything into them.

    Raises ``Unreadable`` if the e-mail is damaged, or its parts are nested too deep.

    Examples
    --------
    >>> read_eml(b"From: Ana <a@b.org>\nSubject: =?utf-8?q?Caf=C3=A9?=\n\nOpen in May.\n").text
    'From: Ana <a@b.org>\nSubject: Café\n\nOpen in May.'
    """
    mail = _Mail()
    try:
        subject = mail.read(message_from_bytes(content, _class=EmailMessage, policy=default))
    except RecursionError:
        raise too_large("its parts are nested too deep; save the attachments as files") from None
    texts = filter(None, (one.strip("\n") for one in mail.texts))
    return Content("\n\n".join(texts), subject, left_out=(*mail.left_out,))


class _Mail:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.left_out: list[str] = []

    def read(self, message: Any, depth: int = 0) -> str:
        """Read an e-mail, and return its subject."""
        heads = [(name, _head(message, name)) for name in _HEADS]
        if not any(text for _, text in heads):
            raise broken("has no From, To, Date or Subject; want an e-mail (RFC 5322)")
        self.texts.append("\n".join(f"{name}: {text}" for name, text in heads if text))
        self._part(message, depth)
        return heads[-1][1]

    def _part(self, part: Any, depth: int) -> None:
        if depth > MAX_NESTING:
            raise too_large(
                f"its parts are nested more than {MAX_NESTING} deep; save the attachments as files"
            )
        if part.defects:
            raise broken(f"is damaged ({type(part.defects[0]).__name__}); get a complete copy")
        kind, name, payload = part.get_content_type(), part.get_filename() or "", part.get_payload()
        within = payload if isinstance(payload, list) else []
        called = shown(name) or f"a part of the type {shown(kind)}"
        if kind in _NOT_READ or kind.startswith("image/"):
            self.left_out.append(f"{called}: {_NOT_READ.get(kind, 'a picture')}")
        elif kind == "multipart/alternative" and within:
            self._part(min(within, key=_rank), depth + 1)
        elif kind == "message/rfc822":
            for one in within:
                self.texts.append("Attached e-mail:")
                self.read(one, depth + 1)
        elif part.is_multipart():
            for one in within:
                self._part(one, depth + 1)
        elif kind in {"text/plain", "text/html"} and not name and not part.is_attachment():
            self.texts.append(_text(part, kind))
        else:
            try:
                self._attachment(part, name, called)
            except (CaragError, BadZipFile, zlib.error) as error:
                self.left_out.append(f"{called}: {problem_of('', error).reason}")

    def _attachment(self, part: Any, name: str, called: str) -> None:
        content = reader_of(name)(_bytes(part))
        if content.facts:
            raise broken("states metadata of its own; save it as a file of its own")
        self.texts += [f"Attachment: {shown(name)}", content.text]
        self.left_out += [f"{called}: {one}" for one in content.left_out]


def _text(part: Any, kind: str) -> str:
    label = (part.get_content_charset() or "utf-8").lower()
    if label not in ENCODINGS:
        raise broken(f"states the unknown encoding {quoted(label)}; want UTF-8")
    text = decoded(_bytes(part), ENCODINGS[label])
    return read_markup(text).text if kind == "text/html" else "\n".join(text.splitlines())


def _rank(alternative: Any) -> int:
    """Return how late an alternative is read: after plain text that is not blank, and then HTML."""
    kind = alternative.get_content_type()
    is_blank = kind == "text/plain" and not _bytes(alternative).strip()
    return len(_PREFERRED) if is_blank or kind not in _PREFERRED else _PREFERRED.index(kind)


def _bytes(part: Any) -> bytes:
    coding = _head(part, "Content-Transfer-Encoding").lower()
    found = part.get_payload(decode=True)
    if coding not in _CODINGS or part.defects or not isinstance(found, bytes):
        raise broken(f"is not coded as it states ({quoted(coding)}); get a complete copy")
    return found


def _head(message: Any, name: str) -> str:
    """Return a decoded head on one line (RFC 2047)."""
    try:
        return " ".join(str(message.get(name, "")).split())
    except Exception as error:  # noqa: BLE001 - the library raises errors of many kinds for odd heads
        raise broken(f"its {name} cannot be read ({type(error).__name__}); save the e-mail again") from None
