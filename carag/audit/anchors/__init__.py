"""Checkpoints kept where the log's owner cannot reach them.

A signed log shows edits to whoever holds its key's public half. It cannot show that its newest records were
cut off, that the directory was put back to an earlier state, that two askers are shown two histories, or that
a thief of the key wrote another one: for that, somebody outside must remember a checkpoint. The records after
the newest such checkpoint are *exposed*, and the exposure is measured.
"""

from __future__ import annotations
