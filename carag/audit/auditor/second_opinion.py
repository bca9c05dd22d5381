"""Check roots and inclusion paths a second time with pymerkle, an independent implementation of the same tree.

pymerkle (extra ``second-opinion``) is never the only check. It computes roots and inclusion paths as RFC 6962 does. Its
consistency proofs follow no standard and are not used; before version 7 they could be forged for any two trees, so
older versions are refused.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any, Final

from carag.audit.receipts.receipt import open_envelope
from carag.audit.tlog.checkpoint import Checkpoint
from carag.audit.tlog.merkle import leaf_hash
from carag.audit.tlog.proof import InclusionProof
from carag.errors import InvalidArgument, MissingExtra
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carag.audit.auditor.reader import LogReader


_WANTED_MAJOR: Final = "7"
"""The only major version of pymerkle that is used."""


def check_asked(name: str) -> None:
    """Check that the named package is pymerkle; InvalidArgument otherwise."""
    if name != "pymerkle":
        raise InvalidArgument(f"{quoted(name)} cannot give a second opinion; want pymerkle")


def second_opinion_on(receipt: bytes) -> str | None:
    """Ask pymerkle whether a receipt's record leads to the root in its checkpoint; return the disagreement, or None.

    No signature is checked. Raises MissingExtra if pymerkle is absent or of a refused version; CorruptFile if the bytes
    are not a receipt.
    """
    pymerkle = _pymerkle()
    layout = import_module("pymerkle.core")._inclusion_path_layout  # noqa: SLF001 # this is why the major version is pinned
    envelope = open_envelope(receipt)
    proof = InclusionProof.parse(envelope.proof)
    checkpoint = Checkpoint.parse(proof.checkpoint.text)
    if not proof.index < checkpoint.size:
        return f"there is no entry {proof.index} among {checkpoint.size}"
    leaf, number = leaf_hash(envelope.record.encode("utf-8")), proof.index + 1  # it counts leaves from 1
    rule, _ = layout(number, checkpoint.size)
    said = pymerkle.InclusionProof("sha256", True, checkpoint.size, number, rule, [leaf, *proof.hashes])
    try:
        pymerkle.verify_inclusion(
            leaf, checkpoint.root, said, index=number, size=checkpoint.size, algorithm="sha256"
        )
    except pymerkle.InvalidProof as error:
        return str(error)
    return None


def disagreements(reader: LogReader, seqs: Iterable[int]) -> list[str]:
    """Compare the newest root and the paths of some records with pymerkle's; return the differences."""
    tree, found = node_tree(reader), []
    if tree.get_root(reader.size) != reader.tree.root:
        found.append(f"the root of {reader.size} records")
    for seq in seqs:
        ours = InclusionProof.parse(reader.prove(seq)).hashes
        if tuple(tree.prove_inclusion(seq + 1, reader.size).path[1:]) != ours:
            found.append(f"the path of record {seq}")
    return found


def node_tree(reader: LogReader) -> Any:
    """Return the log's stored nodes as a read-only ``pymerkle.BaseMerkleTree``; MissingExtra as above."""
    base: Any = _pymerkle().BaseMerkleTree

    class NodeTree(base):  # type: ignore[misc] # the package brings no types
        """pymerkle's algorithms over the log's nodes; nothing below a stored subtree is computed."""

        def __init__(self) -> None:
            super().__init__("sha256", disable_cache=True)
            self._get_subroot = self._stored  # disable_cache binds the name, so bind it after

        def _encode_entry(self, data: bytes) -> bytes:
            return data

        def _store_leaf(self, data: bytes, digest: bytes) -> int:
            raise NotImplementedError("records are appended through AuditLog")

        def _get_leaf(self, index: int) -> bytes:
            return reader.node(0, index - 1)

        def _get_leaves(self, offset: int, width: int) -> list[bytes]:
            return [reader.node(0, offset + step) for step in range(width)]

        def _get_size(self) -> int:
            return reader.size

        def _stored(self, offset: int, width: int) -> bytes:
            level = width.bit_length() - 1
            return reader.node(level, offset >> level)

    return NodeTree()


def _pymerkle() -> Any:
    try:
        found = metadata.version("pymerkle")
        pymerkle = import_module("pymerkle")
    except ImportError as error:  # PackageNotFoundError is one
        raise MissingExtra("a second opinion needs pymerkle; install carag-engine[second-opinion]") from error
    if found.split(".")[0] != _WANTED_MAJOR:
        raise MissingExtra(
            f"pymerkle {found} is not used; want {_WANTED_MAJOR}: in earlier versions a proof can be forged"
        )
    return pymerkle
