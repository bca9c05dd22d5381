"""Lies for the verifiers: receipts altered as JSON trees, without the log's key and with it. Seeded.

A mutant is a receipt's JSON with one to three changes: members dropped, doubled, renamed or exchanged with another
receipt's, types changed, numbers at the ends of their ranges, texts with characters that readers treat differently,
and arrays nested too deep. With the key, the record inside is changed too, and then made whole again: openings are
committed to, passages digested, the state led to, and the checkpoint signed, so that only the lie itself is left.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import json

from carag.audit import Checkpoint, InclusionProof, StateProof, text_hash
from carag.audit.records.commitment import commit
from carag.audit.records.hits import hit_digest
from carag.audit.tlog.encoding import b64url
from carag.audit.tlog.merkle import leaf_hash, node_hash
from carag.errors import CaragError

DEEP = (1, 2, 10, 11, 12, 13, 14, 15, 16, 17, 100, 450, 700, 950, 2000, 60_000)
EDGES = (0, 1, 2, 3, 20, 26, 27, 28, 30, 31, 32, 53, 63, 64)
NUMBERS = (
    *(sign * ((1 << bits) + step) for bits in EDGES for step in (-1, 0, 1) for sign in (1, -1)),
    *(9, 1_000_000, 1_000_001, 1_000_010, 1_000_011, 10**19, 10**300),
)
TEXTS = (
    *(
        "",
        " ",
        "0",
        "00",
        "01",
        "+1",
        "1_0",
        "\u0661",
        "A" * 64,
        "A" * 65,
        "x" * 200,
        "x" * 201,
        "OK\n",
        "a b",
    ),
    *(
        "\x00",
        "\x1b[31m",
        "a\u202eb",
        "\ud800",
        "\ufeff",
        "e\u0301",
        "\x7f",
        "\u2028",
        "\U000e0001",
        "\U0001f600",
    ),
    *(
        "query",
        "retrieve",
        "explain",
        "begin",
        "key",
        "hold",
        "answer",
        "decline",
        "refuse",
        "error",
        "anything",
    ),
    *(
        "asserted",
        "verified",
        "allow",
        "deny",
        "fin7y",
        "fin5y",
        "auditor",
        "carag-receipt/v1",
        "carag-receipt/v2",
    ),
    *("LR", "L", "4294967295", "4294967296", "29395925", "29395926"),
)
KEYS = (
    "extra",
    "Colour",
    "camelCase",
    "_",
    "9",
    "\u00e9",
    "a b",
    "",
    "entities",
    "targets",
    "withheld",
    "proof",
    "retain",
)
ALTERED_BEFORE = (
    *(AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError),
    CaragError,
)
"""What a change may meet where another has been."""
VALUES = (None, True, False, 0, 1, 2, "", "x", [], {}, [0], {"a": 1}, 0.5)


def write(value, style="canonical", rng=None):
    """Write JSON; ``{"@deep": n}`` stands for n nested arrays, which the encoder could not write itself."""
    if style == "spaced":
        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    elif style == "escaped":
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    else:
        text = json.dumps(value, sort_keys=style != "unsorted", separators=(",", ":"), ensure_ascii=False)
    for depth in DEEP:
        text = text.replace(f'{{"@deep":{depth}}}', "[" * depth + "]" * depth)
    return text


def places(tree):
    """List every (container, key) of a tree."""
    found, stack = [], [tree]
    while stack:
        node = stack.pop()
        items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in items:
            found.append((node, key))
            stack.append(value)
    return found


def other_value(value, rng):
    """Give a value that is like another or quite unlike it."""
    kind = rng.randrange(8)
    if isinstance(value, int) and kind < 6:
        return rng.choice([*NUMBERS, value + 1, value - 1, value | 1 << 30, value | 1 << 31, value ^ 1 << 27])
    if isinstance(value, str) and value and kind < 4:
        at = rng.randrange(len(value))
        return rng.choice(
            [
                value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :],
                value[:at] + value[at + 1 :],
                value + rng.choice(["\n", " ", "=", "A", "\x00"]),
                value.swapcase(),
                value[::-1],
            ]
        )
    if isinstance(value, str) and kind < 6:
        return rng.choice(TEXTS)
    if kind == 6:
        return rng.choice([[value], {"value": value}, str(value), [], {}, None, {"@deep": rng.choice(DEEP)}])
    return copy.deepcopy(rng.choice([*VALUES, *NUMBERS, *TEXTS]))


def mutate(tree, others, rng):
    """Change one thing in a tree, in place; ``others`` lend values."""
    found = places(tree)
    if not found:
        return
    node, key = rng.choice(found)
    value = node[key]
    kind = rng.randrange(10)
    if kind < 4:
        node[key] = other_value(value, rng)
    elif kind == 4:
        del node[key]
    elif kind == 5:
        if isinstance(node, list):
            node.insert(rng.randrange(len(node) + 1), copy.deepcopy(value))
        else:
            node[rng.choice([*KEYS, *(k for n, k in found if isinstance(n, dict))])] = copy.deepcopy(value)
    elif kind == 6:
        there = [(n, k) for n, k in places(rng.choice(others)) if k == key] or places(rng.choice(others))
        if there:
            lender, name = rng.choice(there)
            node[key] = copy.deepcopy(lender[name])
    elif kind == 7:
        second, name = rng.choice(found)
        node[key], second[name] = copy.deepcopy(second[name]), copy.deepcopy(value)
    elif kind == 8 and isinstance(node, dict):
        node[rng.choice([f"{key}_", key.upper(), key[:-1], *KEYS])] = node.pop(key)
    elif isinstance(node, list):
        rng.shuffle(node)
    else:
        node[key] = other_value(value, rng)


def left_out(fields, rng):
    """Leave something out that may be, in a form that is right or nearly so."""
    kind, hits = rng.randrange(4), fields["hits"]
    if kind == 0 and fields["openings"]:
        del fields["openings"][rng.choice(sorted(fields["openings"]))]
    elif kind == 1 and isinstance(hits, list) and hits:
        hits[rng.randrange(len(hits))] = None
    elif hits and isinstance(hit := rng.choice(hits), dict) and isinstance(hit.get("proof"), dict):
        if kind == 2:
            hit["proof"] = None
        elif isinstance(until := hit["proof"].get("until"), dict):
            sealed = StateProof.from_json(hit["proof"]).sealed().to_json()
            false = b64url(commit("until", until["value"], bytes(32)))
            hit["proof"] = rng.choice([sealed, sealed, sealed, {**hit["proof"], "until": false}])


def altered_file(originals, rng):
    """Alter a receipt without the log's key."""
    trees = [json.loads(data) for data in rng.sample(originals, min(3, len(originals)))]
    tree = trees[0]
    for _ in range(rng.choice([1, 1, 2, 3])):
        kind = rng.random()
        with contextlib.suppress(*ALTERED_BEFORE):
            if kind < 0.25:
                left_out(tree, rng)
            elif kind < 0.4:
                record = json.loads(tree["record"])
                mutate(record, [json.loads(one["record"]) for one in trees[1:]], rng)
                tree["record"] = write(record)
            else:
                mutate(tree, trees, rng)
    style = rng.choice(["canonical"] * 12 + ["spaced", "escaped", "unsorted"])
    data = encode(write(tree, style)) + b"\n"
    tail = rng.randrange(40)
    return {0: data[:-1], 1: data + b"\n", 2: b"\xef\xbb\xbf" + data, 3: data.replace(b":", b": ", 1)}.get(
        tail, data
    )


def encode(text):
    """Encode what may hold a lone surrogate, which the reader then refuses."""
    return text.encode("utf-8", "surrogatepass")


def signed_lie(originals, key, rng):
    """Alter receipt and record as a log that lies would, and sign it."""
    trees = [json.loads(data) for data in rng.sample(originals, min(3, len(originals)))]
    tree = trees[0]
    record, lenders = json.loads(tree["record"]), [json.loads(one["record"]) for one in trees[1:]]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if places(record) and rng.random() < 0.8:
            (policy_lie if rng.random() < 0.25 else mutate)(record, lenders, rng)
        elif places(tree):
            mutate(tree, trees[1:], rng)
    if rng.random() < 0.9:
        with contextlib.suppress(*ALTERED_BEFORE):
            make_whole(tree, record)
    body = write(record, rng.choice(["canonical"] * 15 + ["spaced", "unsorted"]))
    if isinstance(tree, dict):
        tree["record"] = body
        tree["proof"] = sign(encode(body), key)
    return encode(write(tree)) + b"\n"


def policy_lie(record, lenders, rng):
    """Write a pair and a word that might admit what no policy may."""
    policy, hits = record.get("policy"), record.get("hits")
    if not isinstance(policy, dict) or not isinstance(hits, list) or not hits:
        return mutate(record, lenders, rng)
    bit = 1 << rng.choice([0, 5, 26, 27, 28, 29, 30, 31, 32])
    pair = rng.choice([[bit, 0], [0, bit], [bit, bit], [0, 0], [-1, 0], [bit | 0x20, 0x10000]])
    policy[rng.choice(["masks", "reopened"])] = [pair] * rng.choice([1, 1, 2, 8, 9])
    for hit in hits:
        word = rng.choice([bit, 1 << 27 | bit, 1 << 27 | 0x21, 1 << 27 | 0x21 | bit, 1 << 32 | 1 << 27])
        if isinstance(hit, list) and len(hit) > 1:
            hit[1] = word
    return None


def make_whole(tree, record):
    """Bind what the receipt shows to the record again, as far as it can be."""
    for name, opening in tree["openings"].items():
        salt = base64.urlsafe_b64decode(opening["salt"] + "=")
        record["commitments"][name] = b64url(commit(name, opening["value"], salt))
    root = None
    for place, shown in enumerate(tree["hits"]):
        hit = record["hits"][place]
        if shown is None or not isinstance(hit, list):
            continue
        digest = text_hash(shown["text"])
        hit[0] = b64url(hit_digest(shown["chunk"], digest))
        word = hit[1]
        if shown.get("proof") is not None:
            if root is None:
                root = StateProof.from_json(shown["proof"]).root(shown["chunk"], digest, word)
                record["index"]["snapshot"] = b64url(root)
            elif StateProof.from_json(shown["proof"]).root(shown["chunk"], digest, word) != root:
                shown["proof"] = None


def sign(body, key):
    """Sign a tree of two records whose second is this."""
    first = leaf_hash(b"an earlier record")
    note = key.sign(Checkpoint(key.name, 2, node_hash(first, leaf_hash(body))).to_text())
    return InclusionProof(1, (first,), note).to_text()
