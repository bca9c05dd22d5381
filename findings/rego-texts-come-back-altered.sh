#!/bin/sh
# regopy 1.5.2 (rego-cpp for Python): a text with a backslash comes back from a query as a different text, and one with a
# quotation mark or a line break makes the query raise JSONDecodeError. Two texts that differ can come back as one.
#
# A good engineer guesses that a value of the input which a rule returns unchanged is the value of the input: policies return
# the ids of the documents that a person may see, and ids are paths (`reports\2025`) and titles (`The "Blue" fund`).
# The interpreter writes its result as JSON without escaping these characters, and the wrapper parses that.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check regopy==1.5.2 2>/dev/null
"$home/venv/bin/python" - <<'PYTHON'
import json

from regopy import Interpreter

rego = Interpreter()
rego.add_module("sharing", "package sharing\nimport rego.v1\nseen contains one if { some one in input }\n")


def seen(text):
    rego.set_input([text])
    try:
        return json.loads(str(rego.query("data.sharing.seen")))["expressions"][0][0]
    except json.JSONDecodeError:
        return "JSONDecodeError"


found = {text: seen(text) for text in ("reports", "a\\tb", "\\u0041", 'The "Blue" fund', "two\nlines")}
print(found)
assert found == {
    "reports": "reports",
    "a\\tb": "a\tb",  # five characters became three
    "\\u0041": "A",  # and these are now those of another id
    'The "Blue" fund': "JSONDecodeError",
    "two\nlines": "JSONDecodeError",
}, "this has changed"
PYTHON
echo "as written"
