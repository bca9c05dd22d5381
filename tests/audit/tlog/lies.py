"""Alter honest proofs of a log at random: twelve classes of lies, each of which every verifier must reject."""

from __future__ import annotations

import base64
import random
import re

from carag.audit import Note, SigningKey
from carag.audit.tlog.encoding import b64
from carag.audit.tlog.note import NoteSignature

ORDER = 2**252 + 27742317777372353535851937790883648493  # of Ed25519's base point


# -- what the mutations have in common


def flipped(data, rng):
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def split(q):
    """Take a text apart: what stands before the checkpoint, and the checkpoint."""
    if q["kind"] == "checkpoint":
        return "", q["text"]
    head, _, note = q["text"].partition("\n\n")
    return head + "\n\n", note


def with_note(q, change):
    head, text = split(q)
    return {**q, "text": head + change(Note.parse(text)).to_text()}


def with_path(q, change):
    """Change the list of hashes."""
    if q["kind"] == "checkpoint":
        return None
    lines = q["text"].split("\n\n")[0].split("\n")
    start = 2 if q["kind"] == "inclusion" else 1
    path = change([base64.b64decode(line) for line in lines[start:]])
    if path is None:
        return None
    head = "\n".join([*lines[:start], *map(b64, path)])
    return {**q, "text": f"{head}\n\n{split(q)[1]}"}


# -- mutations: each returns a changed copy, or None where it does not apply


def record_byte(q, rng, log):
    return {**q, "record": flipped(q["record"], rng)} if q["kind"] == "inclusion" else None


def index(q, rng, log):
    near = lambda n: rng.choice([n - 1, n + 1, n ^ 1, rng.randrange(2000), 2**63 - 1, 2**63, -n])  # noqa: E731
    return {
        **q,
        "text": re.sub(r"(index|old) (\d+)", lambda m: f"{m[1]} {near(int(m[2]))}", q["text"], count=1),
    }


def size(q, rng, log):
    """Put another checkpoint of the log, honestly signed, under the proof; or write another size."""
    if q["kind"] != "checkpoint" and rng.random() < 0.6:
        return {**q, "text": split(q)[0] + log.notes[rng.randrange(1, len(log.notes) + 1)].to_text()}
    number = rng.choice([0, 1, 10**18, 2**63 - 1, 2**63, rng.randrange(len(log.notes))])
    return with_note(q, lambda note: Note(re.sub(r"\n\d+\n", f"\n{number}\n", note.text), note.signatures))


def path_removed(q, rng, log):
    def change(path):
        return path and (path.pop(rng.randrange(len(path))), path)[1]

    return with_path(q, lambda path: change(path) if path else None)


def path_added(q, rng, log):
    def change(path):
        path.insert(rng.randrange(len(path) + 1), rng.choice([*path, rng.randbytes(32)]))
        return path

    return with_path(q, change)


def path_swapped(q, rng, log):
    def change(path):
        if len(path) < 2:
            return None
        a, b = rng.sample(range(len(path)), 2)
        path[a], path[b] = path[b], path[a]
        return path

    return with_path(q, change)


def path_altered(q, rng, log):
    def change(path):
        if not path:
            return None
        place = rng.randrange(len(path))
        path[place] = rng.choice(
            [flipped(path[place], rng), path[place][:-1], path[place] + b"\0", bytes(32)]
        )
        return path

    return with_path(q, change)


def checkpoint_text(q, rng, log):
    def change(note):
        origin, number, root, _ = note.text.split("\n")
        text = rng.choice(
            [
                f"{origin}\n{number}\n{b64(flipped(base64.b64decode(root), rng))}\n",
                f"{origin}\n{number}\n{root}\nextension {rng.random()}\n",
                f"{origin}\n{root}\n{number}\n",
                f"{origin}\n{number}\n",
                f"{origin}\n\n{number}\n{root}\n",
            ]
        )
        return Note(text, note.signatures)

    return with_note(q, change)


def signature(q, rng, log):
    def change(note):
        (one,) = note.signatures
        s = int.from_bytes(one.signature[32:], "little")
        data = rng.choice(
            [
                flipped(one.signature, rng),
                one.signature[: rng.randrange(1, 64)],
                one.signature + rng.randbytes(1),
                one.signature[:32]
                + (s + ORDER).to_bytes(32, "little"),  # the same signature, were it not for S < L
                rng.choice(list(log.notes.values())).signatures[0].signature,
                bytes(64),
            ]
        )
        return Note(note.text, (NoteSignature(one.name, one.key_id, data),))

    return with_note(q, change)


def origin(q, rng, log):
    """Sign, with the right key, the same tree under the name of another log; or only write another name."""
    other = f"audit.example/{rng.randrange(10**9)}"

    def change(note):
        if rng.random() < 0.5:
            return log.key.sign(note.text.replace(log.key.name, other, 1))
        text = rng.choice([note.text, note.text.replace(log.key.name, other, 1)])
        (one,) = note.signatures
        name = rng.choice([one.name, other]) if text != note.text else other
        return Note(text, (NoteSignature(name, one.key_id, one.signature),))

    return with_note(q, change)


def key_id(q, rng, log):
    """Alter the id, or let another key of the same name sign, under its own id, or under ours, or there once more."""

    def change(note):
        (one,) = note.signatures
        other = SigningKey(one.name, rng.randbytes(32)).sign(note.text).signatures[0]
        false = NoteSignature(one.name, one.key_id, other.signature)
        return Note(
            note.text,
            rng.choice(
                [
                    (NoteSignature(one.name, flipped(one.key_id, rng), one.signature),),
                    (other,),
                    (false,),
                    (one, false),
                    (other, one, false),
                    (false, one),
                    (one, one),
                ]
            ),
        )

    return with_note(q, change)


def stray_bits(text, rng):
    """Set a bit that base64 of 32 or 68 bytes does not use: the same bytes in another spelling."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    ends = [match.start() for match in re.finditer(r"[A-Za-z0-9+/]=\n", text)]
    at = rng.choice(ends)
    return text[:at] + alphabet[alphabet.index(text[at]) ^ 1] + text[at + 1 :]


ENCODINGS = [
    lambda t, rng: t.replace("\n", "\r\n"),
    lambda t, rng: "\ufeff" + t,
    lambda t, rng: t + rng.choice([" ", "\n", "\0", "x"]),
    lambda t, rng: t[:-1],
    lambda t, rng: re.sub(r"(?m)^(\d+)$", rng.choice([r"0\1", r"+\1", r"\1 ", r" \1"]), t, count=1),
    lambda t, rng: re.sub(
        r"(index|old) ", rng.choice([r"\1  ", r"\1 0", r"\1 +", r"\1\t", r" \1 "]), t, count=1
    ),
    lambda t, rng: re.sub(r"=\n", "\n", t, count=1),
    lambda t, rng: re.sub(r"([+/])", lambda m: {"+": "-", "/": "_"}[m[1]], t[::-1], count=1)[::-1],
    lambda t, rng: t.replace("\u2014", rng.choice(["-", "\u2013", "\u2014\u2014"])),
    lambda t, rng: t.encode().replace(b"\xe2\x80\x94", rng.choice([b"\x97", b"\xe2\x80"])),
    stray_bits,
    lambda t, rng: t.replace("\n\n", "\n\n\n", 1),
    lambda t, rng: t.replace("\n", "\n\n", 1),
]


def encoding(q, rng, log):
    return {**q, "text": rng.choice(ENCODINGS)(q["text"], rng)}


MUTATIONS = [
    record_byte,
    index,
    size,
    path_removed,
    path_added,
    path_swapped,
    path_altered,
    checkpoint_text,
    signature,
    origin,
    key_id,
    encoding,
]


def lie(log, honest, each):
    """Draw altered proofs from the honest ones, as many of each class."""
    rng, made = random.Random(13), []  # noqa: S311
    for mutation in MUTATIONS:
        count = 0
        while count < each:
            q = rng.choice(honest)
            changed = mutation(q, rng, log)
            if changed is not None and changed != q:
                made.append((mutation.__name__, changed))
                count += 1
    return made
