"""Alter a receipt in named ways, each with the check of its verification that notices."""

from __future__ import annotations

import json
import re

from carag.audit import Check
from carag.audit.tlog import encoding
from carag.audit.tlog.encoding import b64, b64url, unb64url


def altered(data, change):
    """Change the JSON and write it canonically again, so that only the change itself can be noticed."""
    fields = json.loads(data)
    change(fields)
    return encoding.encode(fields) + b"\n"


def in_record(pattern, replacement):
    def change(fields):
        fields["record"], count = re.subn(pattern, replacement, fields["record"], count=1)
        assert count == 1

    return change


def in_proof(pattern, replacement):
    def change(fields):
        fields["proof"], count = re.subn(pattern, replacement, fields["proof"], count=1)
        assert count == 1

    return change


def salt_swap(fields):
    opening = fields["openings"]
    opening["query"]["salt"], opening["answer"]["salt"] = opening["answer"]["salt"], opening["query"]["salt"]


def openings_swap(fields):
    fields["openings"]["query"], fields["openings"]["answer"] = (
        fields["openings"]["answer"],
        fields["openings"]["query"],
    )


def cut(proof, count):
    """Take hashes off a state proof, or add zeros."""
    hashes, sides = unb64url(proof["path"], 32 * len(proof["sides"])), proof["sides"]
    if count < 0:
        return {"path": b64url(hashes + bytes(32)), "sides": sides + "L"}
    return {"path": b64url(hashes[32 * count :]), "sides": sides[count:]}


FIRST_HASH = r"(index \d+\n)(\S)(\S*\n)(\S)(\S*\n)"
FAILED = {
    "record altered": (in_record("buy_side", "sell_side"), Check.INCLUSION),
    "record no longer JSON": (in_record("{", "["), Check.INCLUSION),
    "record emptied": (lambda f: f.update(record=""), Check.INCLUSION),
    "record with a space": (in_record(":", ": "), Check.INCLUSION),
    "record with a duplicate key": (in_record("{", '{"as_of":1,'), Check.INCLUSION),
    "hit word altered in the record": (in_record(",134", ",135"), Check.INCLUSION),
    "sibling altered": (in_proof(r"(index \d+\n)..", r"\1AA"), Check.INCLUSION),
    "sibling removed": (in_proof(r"(index \d+\n)\S+\n", r"\1"), Check.INCLUSION),
    "sibling added": (in_proof(r"(index \d+\n)(\S+\n)", r"\1\2\2"), Check.INCLUSION),
    "siblings swapped": (in_proof(r"(index \d+\n)(\S+\n)(\S+\n)", r"\1\3\2"), Check.INCLUSION),
    "31-byte sibling": (in_proof(r"(index \d+\n)\S+", rf"\1{b64(b'a' * 31)}"), Check.INCLUSION),
    "33-byte sibling": (in_proof(r"(index \d+\n)\S+", rf"\1{b64(b'a' * 33)}"), Check.INCLUSION),
    "index + 1": (in_proof("index 5", "index 6"), Check.INCLUSION),
    "index - 1": (in_proof("index 5", "index 4"), Check.INCLUSION),
    "size + 1": (in_proof(r"\n6\n", r"\n7\n"), Check.SIGNATURE),
    "size - 1": (in_proof(r"\n6\n", r"\n5\n"), Check.SIGNATURE),
    "leading zero in the size": (in_proof(r"\n6\n", r"\n06\n"), Check.SIGNATURE),
    "root altered": (in_proof(r"\n6\n..", r"\n6\nAA"), Check.SIGNATURE),
    "extension line": (in_proof(r"(\n6\n\S+\n)", r"\1more\n"), Check.SIGNATURE),
    "origin altered": (in_proof("audit.example/test\n", "audit.example/tent\n"), Check.SIGNATURE),
    "blank line among the hashes": (in_proof(r"(index \d+\n)", r"\1\n"), Check.SIGNATURE),
    "signature altered": (in_proof(r"(— \S+ \S{20})....", r"\1AAAA"), Check.SIGNATURE),
    "signature cut": (in_proof(r"(— \S+ )(\S{80})\S+", r"\1\2"), Check.SIGNATURE),
    "question altered": (lambda f: f["openings"]["query"].update(value="Another?"), Check.COMMITMENTS),
    "answer altered": (lambda f: f["openings"]["answer"].update(value="It rose."), Check.COMMITMENTS),
    "subject altered": (
        lambda f: f["openings"]["subject"].update(value="ben@bank.example"),
        Check.COMMITMENTS,
    ),
    "salts swapped": (salt_swap, Check.COMMITMENTS),
    "openings swapped": (openings_swap, Check.COMMITMENTS),
    "short salt": (lambda f: f["openings"]["query"].update(salt="QUJD"), Check.COMMITMENTS),
    "salt that is no text": (lambda f: f["openings"]["query"].update(salt=5), Check.COMMITMENTS),
    "value that is no text": (lambda f: f["openings"]["query"].update(value=5), Check.COMMITMENTS),
    "opening with more in it": (lambda f: f["openings"]["query"].update(more=5), Check.COMMITMENTS),
    "opening that is a list": (lambda f: f["openings"].update(query=["salt", "value"]), Check.COMMITMENTS),
    "opening of nothing": (lambda f: f["openings"].update(colour=f["openings"]["query"]), Check.COMMITMENTS),
    "passage text altered": (lambda f: f["hits"][0].update(text="Sales rose."), Check.PASSAGES),
    "passage id altered": (lambda f: f["hits"][0].update(chunk="another#1"), Check.PASSAGES),
    **{
        f"state proof: {name}": (change, Check.STATE)
        for name, change in {
            "that is a text": lambda f: f["hits"][0].update(proof="yes"),
            "that is empty": lambda f: f["hits"][0].update(proof={}),
            "with more in it": lambda f: f["hits"][0]["proof"].update(more=1),
            "of the other passage": lambda f: f["hits"][0].update(proof=f["hits"][1]["proof"]),
            "from another minute": lambda f: f["hits"][0]["proof"].update({"from": 28_999_999}),
            "until another minute": lambda f: f["hits"][0]["proof"]["until"].update(value="30000001"),
            "salt of the other": lambda f: f["hits"][0]["proof"]["until"].update(
                salt=f["hits"][1]["proof"]["until"]["salt"]
            ),
            "seal instead of an opening": lambda f: f["hits"][0]["proof"].update(until=b64url(b"u" * 32)),
            "path altered": lambda f: f["hits"][0]["proof"].update(
                path="AAAA" + f["hits"][0]["proof"]["path"][4:]
            ),
            "path of the other": lambda f: f["hits"][0]["proof"].update(path=f["hits"][1]["proof"]["path"]),
            "path cut": lambda f: f["hits"][0]["proof"].update(cut(f["hits"][0]["proof"], 1)),
            "path emptied": lambda f: f["hits"][0]["proof"].update(path="", sides=""),
            "path with a hash more": lambda f: f["hits"][0]["proof"].update(cut(f["hits"][0]["proof"], -1)),
            "a side turned": lambda f: f["hits"][0]["proof"].update(
                sides=f["hits"][0]["proof"]["sides"].translate({ord("L"): "R", ord("R"): "L"})
            ),
            "a side that is none": lambda f: f["hits"][0]["proof"].update(sides="X"),
            "a side missing": lambda f: f["hits"][0]["proof"].update(
                sides=f["hits"][0]["proof"]["sides"][1:]
            ),
        }.items()
    },
    "passages reordered": (lambda f: f["hits"].reverse(), Check.PASSAGES),
    "passage removed": (lambda f: f["hits"].pop(), Check.PASSAGES),
    "passage added": (lambda f: f["hits"].append(f["hits"][0]), Check.PASSAGES),
    "passage with more in it": (lambda f: f["hits"][0].update(more=5), Check.PASSAGES),
    "passage that is a text": (lambda f: f["hits"].__setitem__(0, "Sales rose."), Check.PASSAGES),
}


UNREADABLE = {
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "no newline at the end": lambda data: data[:-1],
    "a second newline": lambda data: data + b"\n",
    "a trailing space": lambda data: data[:-1] + b" \n",
    "a space": lambda data: data.replace(b",", b", ", 1),
    "a duplicate key": lambda data: data.replace(b'{"format"', b'{"format":"carag-receipt/v1","format"'),
    "another format": lambda data: data.replace(b"receipt/v1", b"receipt/v2"),
    "a key more": lambda data: altered(data, lambda f: f.update(more=1)),
    "a key less": lambda data: altered(data, lambda f: f.pop("hits")),
    "hits of another type": lambda data: altered(data, lambda f: f.update(hits={})),
    "an escaped letter": lambda data: data.replace(b"carag-receipt", b"\\u0063arag-receipt"),
    "a proof with CRLF": lambda data: altered(
        data, lambda f: f.update(proof=f["proof"].replace("\n", "\r\n"))
    ),
    "a proof with a trailing space": lambda data: altered(data, in_proof("index 5", "index 5 ")),
    "a proof with an extra line": lambda data: altered(data, in_proof("index", "extra QUJD\nindex")),
    "an empty proof": lambda data: altered(data, lambda f: f.update(proof="")),
    "a list": lambda data: b"[]\n",
    "nothing": lambda data: b"",
}


STATE_LIES = {
    "another word": {"word": 1 << 27 | 0x23},
    "quarantined": {"word": 1 << 30 | 1 << 27 | 0x21},
    "not yet": {"since": 29_395_926},
    "no longer": {"until": 29_395_925},
}
