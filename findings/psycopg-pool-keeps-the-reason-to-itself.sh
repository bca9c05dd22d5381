#!/bin/sh
# psycopg-pool 3.3.3, psycopg 3.3.9, CPython 3.11: a pool whose server refuses connections, or whose address is wrong, waits
# out its whole time limit and then says only that it waited.
#
# A good engineer guesses that a connection that is refused at once is an error at once, with its reason, as
# `psycopg.connect` gives it. The pool retries in background threads with growing pauses, whatever the reason, including a
# wrong password or a missing database. Nothing in the exception chain of the caller's `PoolTimeout` has the reason. Only
# the library's log has it, together with the address, which may not be meant for a log.
#
# No server is needed: nothing listens on the port.
set -eu
home="$(mktemp -d)"
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install --quiet --disable-pip-version-check "psycopg[binary]==3.3.9" psycopg-pool==3.3.3 2>/dev/null
"$home/venv/bin/python" - <<'PYTHON'
import logging
import socket
import time

import psycopg
import psycopg_pool

logged = []


class Kept(logging.Handler):
    def emit(self, record):
        logged.append(record.getMessage())


logging.getLogger("psycopg.pool").addHandler(Kept())
logging.getLogger("psycopg.pool").propagate = False

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
address = f"host=127.0.0.1 port={port} dbname=filings user=auditor"

begun = time.monotonic()
try:
    psycopg.connect(address)
except psycopg.OperationalError as error:
    said = str(error)
print(f"connect: {time.monotonic() - begun:.1f} s, refused: {'refused' in said}")
assert "refused" in said and time.monotonic() - begun < 1

begun = time.monotonic()
with psycopg_pool.ConnectionPool(address, min_size=1, open=False) as pool:
    try:
        with pool.connection(timeout=3):
            raise SystemExit("there was a server")
    except psycopg_pool.PoolTimeout as error:
        timeout = error
waited = time.monotonic() - begun
chain = [timeout]
while (before := chain[-1].__cause__ or chain[-1].__context__) is not None:
    chain.append(before)
print(f"pool: {waited:.1f} s, {[str(one) for one in chain]}")
print(f"logged: refused {any('refused' in one for one in logged)}, address {any(str(port) in one for one in logged)}")
assert waited >= 3
assert not any("refused" in str(one) or str(port) in str(one) for one in chain)
assert any("refused" in one and str(port) in one for one in logged)
print("as described")
PYTHON
