#!/bin/sh
# inscriptis 2.7.6 ignores the `start` of a list and obeys the `value` of an item; html-to-markdown 3.21.2 obeys `start` and
# ignores `value`; both write a list of letters (`type="a"`) as 1, 2. If the `</li>` tags of a list are left out, as HTML
# allows, markdownify 1.2.3 puts its items on one line with one number.
#
# A good engineer guesses that a converter either leaves numbers out or writes those that a browser shows. These converters
# write different numbers: clause 12 of a regulation is then cited as clause 9, with the text of clause 12.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check inscriptis==2.7.6 html-to-markdown==3.21.2 markdownify==1.2.3 2>/dev/null
"$home/venv/bin/python" - <<'PYTHON'
import html_to_markdown
import inscriptis
import markdownify

numbered = '<ol start="7"><li>Seven</li><li>Eight</li><li value="12">Twelve</li></ol>'
lettered = '<ol type="a"><li>x</li><li>y</li></ol>'
unclosed = "<ol><li>One<li>Two</ol>"


def marks(text):
    return [line.split()[0] for line in text.strip().splitlines()]


found = {
    "inscriptis": marks(inscriptis.get_text(numbered)),
    "html-to-markdown": marks(html_to_markdown.convert(numbered).content),
    "inscriptis, letters": marks(inscriptis.get_text(lettered)),
    "html-to-markdown, letters": marks(html_to_markdown.convert(lettered).content),
    "markdownify, unclosed": markdownify.markdownify(unclosed).strip(),
}
print(found)
assert found["inscriptis"] == ["1.", "2.", "12."], "this has changed"
assert found["html-to-markdown"] == ["7.", "8.", "9."], "this has changed"
assert found["inscriptis, letters"] == found["html-to-markdown, letters"] == ["1.", "2."], "this has changed"
assert found["markdownify, unclosed"].count("\n") == 0, "this has changed"
PYTHON
echo "as written"
