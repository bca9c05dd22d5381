#!/bin/sh
# markdownify 1.2.3 and inscriptis 2.7.6: a row below a cell with `rowspan` begins one column too far left, so its figures
# stand under the heads of other columns. html-to-markdown 3.21.2 leaves the place empty.
#
# A good engineer guesses that a converter that pads `colspan` (both do) heeds `rowspan` too: a table whose first column
# names two rows at once is the usual form for limits by branch and year. The result is a well-formed table that gives
# `60` for the unit `2024`, and a model that is given the table answers accordingly.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check markdownify==1.2.3 inscriptis==2.7.6 html-to-markdown==3.21.2 2>/dev/null
"$home/venv/bin/python" - <<'PYTHON'
import html_to_markdown
import inscriptis
import markdownify

table = """<table><tr><th>Unit</th><th>2024</th><th>2025</th></tr>
<tr><td rowspan="2">North</td><td>30</td><td>35</td></tr><tr><td>60</td><td>65</td></tr></table>"""


def last_row(text, between):
    return [one.strip() for one in text.strip().splitlines()[-1].strip("|").split(between) if one.strip() or between == "|"]


found = {
    "markdownify": last_row(markdownify.markdownify(table), "|"),
    "inscriptis": last_row(inscriptis.get_text(table), None),
    "html-to-markdown": last_row(html_to_markdown.convert(table).content, "|"),
}
print(found)
assert found["markdownify"] == ["60", "65"], "this has changed"
assert found["inscriptis"] == ["60", "65"], "this has changed"
assert found["html-to-markdown"] == ["", "60", "65"], "this has changed"
PYTHON
echo "as written"
