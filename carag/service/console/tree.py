"""List the steps of the path from a record to the signed root, to draw them."""

from __future__ import annotations

from typing import Any

from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.merkle import leaf_hash, node_hash
from carag.audit.tlog.proof import InclusionProof


def path_of(record: bytes, proof: str) -> dict[str, Any]:
    """Return the path of RFC 9162 section 2.1.3.2 in hexadecimal: the leaf, each sibling and parent, and the root.

    - ``proof``: the file of a proof that has been verified; only the position of the hashes is read here.
    """
    parsed = InclusionProof.parse(proof)
    checkpoint = Checkpoint.parse(parsed.checkpoint.text)
    node = leaf = leaf_hash(record)
    index, last = parsed.index, checkpoint.size - 1
    steps = []
    for sibling in parsed.hashes:
        is_left = bool(index & 1) or index == last
        node = node_hash(sibling, node) if is_left else node_hash(node, sibling)
        steps.append({"side": "left" if is_left else "right", "sibling": sibling.hex(), "parent": node.hex()})
        while is_left and index and not index & 1:  # the last node of a level may have no sibling
            index, last = index >> 1, last >> 1
        index, last = index >> 1, last >> 1
    return {
        "index": parsed.index,
        "leaf": leaf.hex(),
        "steps": steps,
        "root": checkpoint.root.hex(),
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "checkpoint": parsed.checkpoint.to_text(),
        "signers": [f"{one.name}+{one.key_id.hex()}" for one in parsed.checkpoint.signatures],
    }
