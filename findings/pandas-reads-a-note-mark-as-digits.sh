#!/bin/sh
# pandas 3.1.1, `read_html`: a figure with a raised note mark is a number ten times as great, and a figure that was
# deleted is joined to the figure that was inserted. Both come out as integers, and nothing shows the error.
#
# A good engineer guesses that a cell of `2,500` with the mark of note 1 is 2500, or at worst a text that is not a number:
# regulators' and companies' tables are full of such marks, and `read_html` is how analysts load them. It takes the
# text of a cell without regard to `<sup>` and `<del>`, and then drops the comma that groups thousands.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check pandas==3.1.1 lxml==6.1.3 2>/dev/null
"$home/venv/bin/python" - <<'PYTHON'
import io

import pandas

table = """<table><tr><th>Fee</th><th>Cap</th></tr>
<tr><td>2,500<sup>1</sup></td><td><del>10</del><ins>15</ins></td></tr></table>"""
[found] = pandas.read_html(io.StringIO(table))
print(found.dtypes.to_dict(), found.to_dict("records"))
assert found.to_dict("records") == [{"Fee": 25001, "Cap": 1015}], "this has changed"
assert all(one.kind == "i" for one in found.dtypes), "this has changed: they are not integers"
PYTHON
echo "as written"
