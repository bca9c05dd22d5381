"""Serve the small corpus to three made-up people, and open the console; nothing is left when it ends.

The issuer of their tokens is this process, its key lives in memory, and the service listens on this machine alone.
"""

from __future__ import annotations

import argparse
import tempfile
import webbrowser
from pathlib import Path

from carag import Engine
from carag.service.console.demo import PEOPLE, Demo
from carag.service.service import Service
from carag.service.serving import serve

CORPUS = Path(__file__).parents[1] / "data" / "corpus"


def main() -> None:
    """Ingest, serve, and say where."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=8321, help="of the console; 0 takes any")
    parser.add_argument("--no-browser", action="store_true", help="open no browser")
    said = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="carag-console-") as home,
        Engine.open(Path(home, "store")) as engine,
    ):
        print(engine.ingest(CORPUS))
        demo = Demo()
        service = Service(engine, Path(home, "store"), demo.settings(Path(home), port=said.port), keys=demo)

        def started(port: int, _: int) -> None:
            address = f"http://127.0.0.1:{port}/console/"
            people = "; ".join(one.name for one in PEOPLE.values())
            print(f"{address} is open to {people}. Ctrl+C ends it.", flush=True)
            if not said.no_browser:
                webbrowser.open(address)

        serve(service, started=started)


if __name__ == "__main__":
    main()
