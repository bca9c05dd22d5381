#!/bin/sh
# regopy 1.5.2 (rego-cpp for Python): a whole number of the input from 2^63 on becomes a different number, without an error:
# 2^63 + 5 is negative, 2^64 is 0, and 10^30 is some positive number. A number of the module's own text stays as it is.
#
# A good engineer guesses that whole numbers are exact, as Rego's reference says and the Open Policy Agent has them, or that
# too great a number is refused: hashes and ids of 64 bits without a sign are common in the data that policies compare.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check regopy==1.5.2 2>/dev/null
"$home/venv/bin/python" - <<'PYTHON'
import json

from regopy import Interpreter

rego = Interpreter()
rego.add_module("numbers", "package numbers\nsame := input.given\nown := 9223372036854775808\n")
found = {}
for given in (2**63 - 1, 2**63 + 5, 2**64, 10**30):
    rego.set_input({"given": given})
    [found[given]] = json.loads(str(rego.query("data.numbers.same")))["expressions"]
[own] = json.loads(str(rego.query("data.numbers.own")))["expressions"]
print(found, own)
assert found == {
    2**63 - 1: 2**63 - 1,
    2**63 + 5: 5 - 2**63,
    2**64: 0,
    10**30: 5076944270305263616,
}, "this has changed"
assert own == 2**63, "this has changed"
PYTHON
echo "as written"
