#!/bin/sh
# lancedb 0.40.0: after `delete` and `optimize(cleanup_older_than=timedelta(0))`, the vectors of the deleted rows are still in
# the table's data file, byte for byte. A fragment is written again only if more than a tenth of its rows are deleted; the
# rest is hidden by a deletion file, and cleaning up older versions removes no data file that the current one refers to.
#
# A good engineer guesses that compacting, and removing every older version, leaves the current rows alone: the documentation
# of `optimize` says that it compacts files and prunes old versions, and a deletion request is when people call it so.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check lancedb==0.40.0 pyarrow==26.0.1 numpy==2.4.6 2>/dev/null
HOME_OF_ROWS="$home/rows" "$home/venv/bin/python" - <<'PYTHON'
import os
from datetime import timedelta
from pathlib import Path

import lancedb
import numpy as np
import pyarrow

rows = np.random.default_rng(1).standard_normal((2000, 32), dtype=np.float32)
column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.ravel()), 32)
home = Path(os.environ["HOME_OF_ROWS"])
table = lancedb.connect(home).create_table("rows", pyarrow.table({"id": np.arange(2000), "vector": column}))


def left(numbers: range) -> int:
    files = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    return sum(any(rows[number].tobytes() in file for file in files) for number in numbers)


few, many = range(0, 2000, 20), range(1, 2000, 4)
found = [left(few)]
for gone in (few, many):
    table.delete(f"id IN ({', '.join(map(str, gone))})")
    table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
    found.append(left(few))
print(table.count_rows(), found)
assert table.count_rows() == 1400
assert found == [100, 100, 0], "this has changed"
PYTHON
echo "as written"
