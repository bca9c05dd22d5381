#!/bin/sh
# chromadb 1.5.9: opening a folder with `PersistentClient`, and nothing more, changes `chroma.sqlite3`, each time. Counting the
# rows of a collection, which reads, also changes `length.bin` of its index.
#
# A good engineer guesses that reading leaves a store's bytes as they are: that a hash taken of the folder still holds after
# somebody looked into it, that two nightly copies of an unused store are equal, and that an archive can be read where it lies.
# To show that evidence was not altered, one has to open a copy. A folder of Qdrant's local mode stays
# as it is.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check chromadb==1.5.9 qdrant-client==1.20.0 2>/dev/null
HOME_OF_ROWS="$home/rows" "$home/venv/bin/python" - <<'PYTHON'
import hashlib
import os
import subprocess
import sys
from pathlib import Path

HOME = Path(os.environ["HOME_OF_ROWS"])
CHROMA = (
    "import chromadb, sys\n"
    "client = chromadb.PersistentClient(sys.argv[1], settings=chromadb.Settings(anonymized_telemetry=False))\n"
)
NAMED = "rows = client.get_collection('rows', embedding_function=None)\n"
QDRANT = (
    "import sys\nfrom qdrant_client import QdrantClient, models\nclient = QdrantClient(path=sys.argv[1])\n"
)
VECTORS = "[[float(at), 1.0, 2.0] for at in range(50)]"


def run(kind: str, code: str) -> list[str]:
    """Run code in a process of its own; return the names of the files that it changed."""
    folder = HOME / kind
    folder.mkdir(parents=True, exist_ok=True)
    before = hashes(folder)
    subprocess.run([sys.executable, "-c", code, folder], check=True, stderr=subprocess.DEVNULL)
    after = hashes(folder)
    return sorted(Path(name).name for name in {*before, *after} if before.get(name) != after.get(name))


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


run(
    "chroma",
    CHROMA + "rows = client.create_collection('rows', embedding_function=None)\n"
    f"rows.add(ids=[str(at) for at in range(50)], embeddings={VECTORS}, documents=['text'] * 50)",
)
found = [run("chroma", CHROMA), run("chroma", CHROMA), run("chroma", CHROMA + NAMED + "assert rows.count() == 50")]
run(
    "qdrant",
    QDRANT + "client.create_collection('rows', models.VectorParams(size=3, distance='Cosine'))\n"
    f"client.upsert('rows', [models.PointStruct(id=at, vector=one) for at, one in enumerate({VECTORS})])\nclient.close()",
)
found.append(run("qdrant", QDRANT + "assert client.count('rows').count == 50\nclient.close()"))
print(found)
assert found == [["chroma.sqlite3"], ["chroma.sqlite3"], ["chroma.sqlite3", "length.bin"], []], "this has changed"
PYTHON
echo "as written"
