"""Implement transparency logs (RFC 6962, C2SP): Merkle trees, proofs, signed notes and checkpoints."""
