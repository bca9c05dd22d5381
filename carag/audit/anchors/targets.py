"""Create anchors from their names on a command line or in a configuration.

=====================  =====================================================================================
``s3://bucket/prefix``  S3 Object Lock
``tsa:URL``             an RFC 3161 timestamp authority; needs the root certificates that vouch for it
``witness:URL``         a tlog-witness; needs a policy file that names its key, see ``trust_policy.py``
=====================  =====================================================================================
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from carag.audit.anchors._http import check_url
from carag.audit.anchors.s3 import RETAIN_DAYS, S3Anchor
from carag.audit.anchors.timestamp import TimestampAnchor
from carag.audit.anchors.trust_policy import TrustPolicy
from carag.audit.anchors.witness import WitnessAnchor
from carag.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from carag.audit.anchors.anchor import Anchor


def anchors_named(
    names: Sequence[str],
    *,
    policy: str | PathLike[str] | None = None,
    tsa_roots: str | PathLike[str] | None = None,
    retain_days: int = RETAIN_DAYS,
    region: str | None = None,
    endpoint_url: str | None = None,
) -> tuple[Anchor, ...]:
    """Create anchors from names. All ``witness:`` names together make one anchor, which needs the policy's quorum.

    Parameters
    ----------
    policy : path, optional
        A ``c2sp.org/tlog-policy`` file with every witness and its URL.
    tsa_roots : path, optional
        A PEM file; needed for timestamp authorities.
    retain_days, region, endpoint_url
        Settings of S3.

    Raises
    ------
    InvalidArgument
        If a name is invalid, is given twice, or lacks a file that it needs.
    MissingExtra
        If a package is not installed.

    Examples
    --------
    >>> anchors_named(["ftp://example"])
    Traceback (most recent call last):
    carag.errors.InvalidArgument: 'ftp://example' names no anchor; want s3://bucket/prefix, tsa:URL or witness:URL
    """
    anchors: list[Anchor] = []
    asked: list[str] = []
    if len(set(names)) < len(names):
        raise InvalidArgument("an anchor is named twice; name each once")
    for name in names:
        if name.startswith("s3://"):
            anchors.append(S3Anchor(name, retain_days=retain_days, region=region, endpoint_url=endpoint_url))
        elif name.startswith("tsa:"):
            if tsa_roots is None:
                raise InvalidArgument(f"{name} needs trusted root certificates; give a PEM file")
            anchors.append(TimestampAnchor(name.removeprefix("tsa:"), tsa_roots))
        elif name.startswith("witness:"):
            asked.append(check_url(name.removeprefix("witness:")))
        else:
            raise InvalidArgument(
                f"{name!r} names no anchor; want s3://bucket/prefix, tsa:URL or witness:URL"
            )
    return (*anchors, *([_witnesses(asked, policy)] if asked else []))


def _witnesses(urls: list[str], policy: str | PathLike[str] | None) -> WitnessAnchor:
    if policy is None:
        raise InvalidArgument(
            "a witness needs a policy file with its key: witness NAME VKEY URL, and a quorum line"
        )
    try:
        trust = TrustPolicy.parse(Path(policy).read_bytes().decode("utf-8", "surrogateescape"))
    except OSError as error:
        raise InvalidArgument(f"the policy {policy} cannot be read: {error}") from error
    known = {witness.url for witness in trust.witnesses}
    if missing := [url for url in urls if url not in known]:
        raise InvalidArgument(
            f"{policy} names no witness at {missing[0]}; add: witness NAME VKEY {missing[0]}"
        )
    kept = (
        witness if witness.url in urls else dataclasses.replace(witness, url=None)
        for witness in trust.witnesses
    )
    return WitnessAnchor(dataclasses.replace(trust, witnesses=tuple(kept)))
