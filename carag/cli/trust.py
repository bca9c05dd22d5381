"""Trust your own code to make a store's embedder: ``carag trust``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carag.cli._files import opened_log
from carag.cli._output import Exit, say
from carag.errors import InvalidArgument
from carag.limits import quoted


def trust(
    factory: Annotated[
        str | None,
        typer.Argument(metavar="MODULE:FACTORY", help="The function that returns the store's embedder."),
    ] = None,
    store: Annotated[
        Path | None, typer.Option("--store", metavar="DIR", envvar="CARAG_STORE", help="The store.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List what is trusted, for any store.")] = False,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Withdraw the trust for this store.")] = False,
) -> int:
    """Trust your own embedder for a store, so that it need not be named each time; recorded, kept outside the store.

    It is imported now, and must be the embedder that the store was made with. [b]carag ask[/b] and [b]ingest[/b] then
    use it unless an option, the environment or [b]carag.toml[/b] names one.

    [dim]carag trust my_models:Words --store store[/dim]
    """
    if (factory is not None) + listed + withdraw != 1:
        raise InvalidArgument("give exactly one of MODULE:FACTORY, --list and --withdraw")
    if listed:
        return _list()
    if store is None:
        raise InvalidArgument("no store is given; set --store DIR, CARAG_STORE, or store in carag.toml")
    return _withdraw(store) if factory is None else _trust(factory, store)


def _trust(factory: str, store: Path) -> int:
    from carag.cli._trusted import Pin, Pins, keys_of
    from carag.engine.configuration import record_trust
    from carag.engine.corpus import embedder_kept_in
    from carag.engine.factories import is_factory, made_by_name

    if not is_factory(factory):
        raise InvalidArgument(f"{quoted(factory)} is not MODULE:FACTORY; CARAG's own embedders need no trust")
    pins, keys = Pins(), keys_of(store)
    name, fingerprint = embedder_kept_in(store)
    made = made_by_name("embedder", factory, not_in=store)
    if (name, fingerprint) != (made.name, made.fingerprint):
        raise InvalidArgument(
            f"{factory} makes {made.name!r}, but {store} was made with {name!r}, or an earlier state of it; name the "
            "embedder that the store was made with"
        )
    with opened_log(store) as log:
        record_trust(log, store, factory)  # first, so that nothing is trusted that is not on record
        pins.add(Pin(factory=factory, name=name, fingerprint=fingerprint, keys=keys))
    say(f"{factory} makes the embedder {name} of {store}, on record; kept in {pins.path}")
    return Exit.OK


def _withdraw(store: Path) -> int:
    from carag.cli._trusted import Pins, keys_of
    from carag.engine.configuration import record_trust

    pins, keys = Pins(), keys_of(store)
    if (pin := pins.of(keys)) is None:
        raise InvalidArgument(f"nothing is trusted for {store}; see: carag trust --list")
    with opened_log(store) as log:
        pins.remove(keys)  # first, so that what the record calls withdrawn is withdrawn
        record_trust(log, store, pin.factory, withdrawn=True)
    say(f"{pin.factory} is no longer trusted for {store}, on record")
    return Exit.OK


def _list() -> int:
    from carag.cli._trusted import Pins

    pins = Pins()
    for pin in pins.all:
        say(f"{pin.factory} makes {pin.name} for the log {pin.keys[0].partition('+')[0]}")
    if not pins.all:
        say(f"nothing is trusted: there are no entries in {pins.path}")
    return Exit.OK
