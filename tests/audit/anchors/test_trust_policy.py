"""Policy files of c2sp.org/tlog-policy: the specification's example, its rules, and each broken rule."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carag.audit.anchors.trust_policy import TrustPolicy
from carag.audit.anchors.witness import WitnessAnchor
from carag.audit.tlog.keys import SigningKey, WitnessSigningKey
from carag.errors import InvalidArgument

NAMES = ("X1", "X2", "X3", "Y1", "Y2", "Y3")
VKEY = {name: str(WitnessSigningKey(f"{name}.example", name.encode() * 16).verifier) for name in NAMES}
LOG = str(SigningKey("log.example/1", b"k" * 32).verifier)
NEXT = str(SigningKey("log.example/1", b"n" * 32).verifier)
EXAMPLE = f"""# the specification's example
log {LOG}
  log {NEXT}\thttps://log.example/

witness X1 {VKEY["X1"]} https://x1.example/
witness X2 {VKEY["X2"]}
witness X3 {VKEY["X3"]}
group X-witnesses 2 X1 X2 X3
witness Y1 {VKEY["Y1"]}
witness Y2 {VKEY["Y2"]}
witness Y3 {VKEY["Y3"]}
group Y-witnesses any Y1 Y2 Y3
group X-and-Y all X-witnesses Y-witnesses
quorum X-and-Y
"""


def test_the_quorum_of_the_example():
    """At least two X and one Y, for every subset of the witnesses."""
    policy = TrustPolicy.parse(EXAMPLE)
    for count in range(7):
        for some in itertools.combinations(NAMES, count):
            xs, ys = (sum(name[0] == letter for name in some) for letter in "XY")
            assert policy.satisfied_by(some) == (xs >= 2 and ys >= 1), some


@given(st.integers(1, 6), st.sets(st.sampled_from(NAMES)))
def test_law_a_threshold_counts(threshold, some):
    """k of n means at least k."""
    lines = [f"witness {name} {VKEY[name]}" for name in NAMES]
    policy = TrustPolicy.parse("\n".join([*lines, f"group g {threshold} {' '.join(NAMES)}", "quorum g"]))
    assert policy.satisfied_by(some) == (len(some) >= threshold)


def test_both_keys_of_a_rotated_log_are_listed():
    """A key a line; another log's are not among them."""
    policy = TrustPolicy.parse(EXAMPLE)
    assert [str(key) for key in policy.keys_of("log.example/1")] == [LOG, NEXT]
    assert policy.keys_of("log.example/2") == ()


WITNESS = f"witness X1 {VKEY['X1']}\n"
BROKEN = {
    "no quorum": WITNESS,
    "two quorums": "quorum none\nquorum none\n",
    "an unknown quorum": "quorum X1\n",
    "a quorum above its witness": f"quorum X1\n{WITNESS}",
    "a name twice": f"{WITNESS}witness X1 {VKEY['X2']}\nquorum none",
    "a witness key twice": f"{WITNESS}witness X2 {VKEY['X1']}\nquorum none",
    "a log key twice": f"log {LOG}\nlog {LOG}\nquorum none",
    "a log's key for a witness": f"witness X1 {LOG}\nquorum none",
    "a witness's key for a log": f"log {VKEY['X1']}\nquorum none",
    "a member twice": f"{WITNESS}group a any X1\ngroup b any X1\nquorum a",
    "a group in itself": "group a any a\nquorum none",
    "a group without members": "group a any\nquorum none",
    "none as a member": "group a any none\nquorum none",
    "a group named none": f"{WITNESS}group none any X1\nquorum none",
    "threshold 0": f"{WITNESS}group a 0 X1\nquorum none",
    "threshold too high": f"{WITNESS}group a 2 X1\nquorum none",
    "threshold with a zero": f"{WITNESS}group a 01 X1\nquorum none",
    "threshold in other digits": f"{WITNESS}group a \u0661 X1\nquorum none",
    "an unknown line": "mirror X1\nquorum none",
    "a line too long": f"log {LOG} https://a.example more\nquorum none",
    "not the address": f"witness X1 {VKEY['X1']} ftp://x1.example\nquorum none",
    "a carriage return": "quorum none\r\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_policy_is_refused(text):
    """A policy that cannot be read is refused, and nothing is guessed."""
    with pytest.raises(InvalidArgument):
        TrustPolicy.parse(text)


@pytest.mark.parametrize("text", ["quorum none", f"{WITNESS}quorum X1"])
def test_an_anchor_needs_witnesses_it_can_ask(text):
    """No quorum, or one without addresses, is the caller's mistake, not silence."""
    with pytest.raises(InvalidArgument):
        WitnessAnchor(TrustPolicy.parse(text))
