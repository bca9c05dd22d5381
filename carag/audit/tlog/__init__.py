"""Prove what a log holds: Merkle trees, proofs, signed notes and checkpoints (RFC 6962, C2SP); knows no record."""
