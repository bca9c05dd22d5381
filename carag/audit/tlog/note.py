"""Read and write signed notes (``c2sp.org/signed-note``).

A note is a text, a blank line, and one signature line for each key. The readers are stricter than the specification:
only the canonical form is accepted, and no key may sign twice. Signatures by unknown keys are ignored, as the
specification demands, because of key rotation and witnesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from carag.audit.tlog.encoding import b64, unb64
from carag.errors import CorruptFile, InvalidArgument
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable


MAX_SIGNATURES: Final = 100
"""Greatest number of signatures on a note."""
KEY_ID_SIZE: Final = 4  # bytes
_MAX_NAME: Final = 200  # characters
_DASH: Final = "\u2014 "


def check_key_name(name: str) -> None:
    """Raise InvalidArgument unless ``name`` can name a key and be the origin of a log."""
    plain = name.isprintable() and not any(character.isspace() or character == "+" for character in name)
    if not (0 < len(name) <= _MAX_NAME and plain):
        raise InvalidArgument(
            f"a key name has 1 to {_MAX_NAME} printable characters without space or '+', got {quoted(name)}"
        )


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line: which key, and its signature of the text."""

    name: str
    key_id: bytes
    signature: bytes

    def to_line(self) -> str:
        """Write the line without its newline."""
        return f"{_DASH}{self.name} {b64(self.key_id + self.signature)}"

    @classmethod
    def parse(cls, line: str) -> NoteSignature:
        """Read a line without its newline; CorruptFile if it is not one."""
        name, space, encoded = line.removeprefix(_DASH).partition(" ")
        if not (line.startswith(_DASH) and space):
            raise CorruptFile(f"not a signature line: {quoted(line)}")
        data = unb64(encoded)
        if len(data) <= KEY_ID_SIZE:
            raise CorruptFile(f"a signature of {len(data)} bytes is too short")
        try:
            check_key_name(name)
        except InvalidArgument as error:
            raise CorruptFile(str(error)) from error
        return cls(name, data[:KEY_ID_SIZE], data[KEY_ID_SIZE:])


@dataclass(frozen=True, slots=True)
class Note:
    """A text, ending in a newline, with its signatures. Parsing checks only the form, ``NoteKey.verifies`` the rest."""

    text: str
    signatures: tuple[NoteSignature, ...]

    def signed_also(self, signatures: Iterable[NoteSignature]) -> Note:
        """Return the note with further signature lines, except those by keys that have signed it already."""
        here = {(signature.name, signature.key_id) for signature in self.signatures}
        new = [s for s in signatures if (s.name, s.key_id) not in here]
        return Note(self.text, (*self.signatures, *new))

    def to_text(self) -> str:
        """Write the note."""
        lines = "".join(f"{signature.to_line()}\n" for signature in self.signatures)
        return f"{self.text}\n{lines}"

    @classmethod
    def parse(cls, text: str) -> Note:
        """Read a note; CorruptFile if it is malformed, or signed twice by one key."""
        if any(character < " " and character != "\n" for character in text):
            raise CorruptFile("the note has a control character other than a newline")
        body, blank, lines = text.rpartition("\n\n")
        if not (body and blank and lines.endswith("\n")):
            raise CorruptFile("a note is text, a blank line and signature lines, each ending in a newline")
        signature_lines = lines[:-1].split("\n")
        if len(signature_lines) > MAX_SIGNATURES:
            raise CorruptFile(f"a note has at most {MAX_SIGNATURES} signatures")
        note = cls(body + "\n", tuple(NoteSignature.parse(line) for line in signature_lines))
        if len({(signature.name, signature.key_id) for signature in note.signatures}) < len(signature_lines):
            raise CorruptFile("a note is signed twice by the same key")
        if note.to_text() != text:
            raise CorruptFile("a note is not in its canonical spelling")
        return note


class NoteKey(Protocol):
    """A public key of any signature type, of a log or a witness, that may have signed a note."""

    @property
    def name(self) -> str:
        """The name in the key's signature lines."""

    @property
    def key_id(self) -> bytes:
        """Four bytes that distinguish the key from others with the same name."""

    def signature_on(self, note: Note) -> NoteSignature | None:
        """Find this key's signature on a note, verified or not."""

    def verifies(self, note: Note) -> bool:
        """Tell whether the note carries a valid signature by this key."""
