"""Open a store's documents, wherever they are, and keep in its notes which profile and embedder it has.

The texts of a profile that does not ship are data, never run. Where nothing is embedded, :data:`NO_EMBEDDER` stands in
for the embedder, so that no model, network or import is needed.
"""

from __future__ import annotations

import json
import secrets
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from carag.audit._files import write_atomically
from carag.audit._notes import SHARED_AT, remembered
from carag.errors import MALFORMED, CorruptFile, InvalidArgument
from carag.index import Index
from carag.labelling.widening import opened_documents
from carag.limits import check_label
from carag.policy import Profile
from carag.retrieval.public_names import PublicNames
from carag.retrieval.reading import Declared
from carag.store.postgres import PostgresStore
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    from carag.policy import PolicyTable


_CORPUS: Final = "corpus.db"
_OWN: Final = "shared.id"
"""The file that tells the notes about this directory's own files from those of other directories, on any machine."""


def has_store(directory: Path) -> bool:
    """Tell whether a directory has a store, its own or a shared one."""
    return (directory / _CORPUS).exists() or (directory / SHARED_AT).exists()


def open_corpus(
    directory: Path, *, create: bool = False, clock: Callable[[], int] | None = None
) -> CorpusStore:
    """Open the documents of a store, from the file in its directory or shared."""
    more: dict[str, Any] = {} if clock is None else {"clock": clock}
    if (address := remembered(directory, SHARED_AT)) is None:
        return CorpusStore.open(directory / _CORPUS, create=create, **more)
    file = directory / SHARED_AT
    return PostgresStore(address.url, address.schema, file, own=_own(directory), **more)


def _own(directory: Path) -> str:
    file = directory / _OWN
    if not file.exists():
        write_atomically(file, secrets.token_hex(16).encode("ascii"))
    return file.read_text("ascii")


_NAME: Final = "profile"
"""The store's note of the profile's name."""
_BITS: Final = "profile_bits"
"""The store's note of the hash of what never changes in its profile, in hexadecimal."""
_TEXTS: Final = "profile_texts"
"""The store's note of the profile's two files, as JSON; empty for a profile that ships with the package."""
_READING: Final = "profile_reading"
"""The store's note of the profile's further files, by name, as JSON; absent in a store of 0.2.0."""


def kept_profile(store: CorpusStore) -> Profile | None:
    """Return the profile that a store names: None if it is new, EDGAR's for a store of filings from before profiles."""
    name = store.meta_get(_NAME)
    if name is None:
        return Profile.open() if store.epoch else None
    texts = store.meta_get(_TEXTS)
    try:
        if texts:
            policy, roles = json.loads(texts)
            profile = Profile.from_texts(policy, roles, json.loads(store.meta_get(_READING) or "{}"))
            Declared.of(profile)
        else:
            profile = Profile.open(name)
    except MALFORMED as error:
        raise CorruptFile(
            f"{store.path} names the profile {name!r}, which cannot be read: {error}; restore a backup, or use the "
            "CARAG that made the store"
        ) from error
    if (profile.name, profile.bits_sha256) != (name, store.meta_get(_BITS)):
        raise CorruptFile(
            f"{store.path} was labelled with other bits or metadata of {name!r} than these, which never change in a "
            "store; restore a backup, or use the CARAG that made the store"
        )
    return profile


def profile_of(directory: str | PathLike[str]) -> Profile:
    """Return the profile of a store that is only read, even while an engine holds the store."""
    with open_corpus(Path(directory)) as store:
        profile = kept_profile(store)
    if profile is None:
        raise InvalidArgument(
            f"{directory} is new and has no profile yet; give it one with: carag ingest PATH --profile NAME_OR_DIR "
            f"--store {directory}"
        )
    return profile


def documents_opened(
    directory: str | PathLike[str], old: PolicyTable, new: PolicyTable
) -> tuple[int, list[str]]:
    """Count a store's documents that another table's rules label differently, and list those that they would open."""
    with open_corpus(Path(directory)) as store:
        return opened_documents(old, new, stated_facts(store))


def stated_facts(store: CorpusStore) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the id of each document that states facts for rules, and these facts."""
    for name in dict.fromkeys(row[1] for row in store.documents.described()):  # each version is a row
        known = store.documents.facts_of(name) or {}
        if known.get("facts") and not known["removed"]:
            yield name, known["facts"]


def keep_names(directory: str | PathLike[str], content: bytes, file: str) -> PublicNames:
    """Keep a table of names (``company_tickers.json`` or JSON lines) in a store that is not open; return it."""
    profile = profile_of(directory)
    if not Declared.of(profile).companies:
        raise InvalidArgument(
            f"the profile {profile.name!r} of {directory} reads no companies in questions; give a table of names "
            "only to "
            "a store of filings"
        )
    names = PublicNames.parse(content, file)
    with open_corpus(Path(directory)) as store:
        names.keep(store)
    return names


def settle_profile(
    store: CorpusStore, given: str | PathLike[str] | Profile | None, *, accept: bool = False
) -> Profile:
    """Return the profile to open a store under; a new store takes the profile given, by default EDGAR's.

    With ``accept`` the profile given may decide differently from the one kept, and must then be put in force.
    """
    kept = kept_profile(store)
    if given is None and kept is not None:
        return kept
    profile = Profile.open() if given is None else Profile.open(given)
    Declared.of(profile)
    if kept is None:
        store.meta_update(notes_of(profile))
        return profile
    if (kept.name, kept.bits_sha256) != (profile.name, profile.bits_sha256):
        raise InvalidArgument(
            f"the store's profile is {kept.name!r}, and its bits and metadata never change, but {profile.name!r} has "
            "different ones; leave the profile out, or make a new store"
        )
    if not accept and not is_same(kept, profile):
        raise InvalidArgument(
            f"the store's profile {kept.name!r} has other roles, intents, words or tables for reading questions "
            "than the profile given; leave that out, or put it in force with: carag policy apply FOLDER --store "
            f"{store.path.parent}"
        )
    return profile


def is_same(one: Profile, other: Profile) -> bool:
    """Tell whether two profiles of the same bits decide and read alike."""
    return (one.table.sha256, one.reading) == (other.table.sha256, other.reading)


def notes_of(profile: Profile) -> dict[str, str]:
    """Return the notes by which a store keeps a profile."""
    # A profile that ships with the package is kept by name; its roles change with the package, on record.
    texts, reading = (
        ("", "") if profile.is_shipped else (json.dumps(profile.texts), json.dumps(dict(profile.reading)))
    )
    return {_NAME: profile.name, _BITS: profile.bits_sha256, _TEXTS: texts, _READING: reading}


class _Chosen(Enum):
    NO_EMBEDDER = "no embedder"


NO_EMBEDDER: Final = _Chosen.NO_EMBEDDER
"""A value for ``embedder=`` in :meth:`carag.Engine.open`, to open a store to explain and administer, not to search."""


class KeptEmbedder:
    """What a store keeps about its embedder; this stand-in embeds nothing."""

    remote = False

    def __init__(self, store: CorpusStore, index_path: Path) -> None:
        self.name, self.fingerprint = _kept(store)
        self._store, self._index_path = store, index_path

    @property
    def dim(self) -> int:
        """The number of components of a vector, as stored."""
        if (dim := self._store.dim) is not None:
            return dim
        if not self._index_path.exists():
            raise InvalidArgument(
                f"{self._store.path} holds no passage and has no index; open it with its embedder, {self.name!r}"
            )
        index = Index.load(self._index_path)
        try:
            return index.dim
        finally:
            index.close()

    def embed_documents(self, texts: Sequence[str]) -> NoReturn:  # noqa: ARG002 - the port's name
        """Raise an error."""
        raise self._refusal()

    def embed_query(self, text: str) -> NoReturn:  # noqa: ARG002 - the port's name
        """Raise an error."""
        raise self._refusal()

    def _refusal(self) -> InvalidArgument:
        return InvalidArgument(
            f"this store was opened without its embedder; open it with {self.name!r} to search or to add"
        )


def embedder_kept_in(directory: Path) -> tuple[str, str]:
    """Return the name and the fingerprint of the embedder of a store that is only read."""
    with open_corpus(directory) as store:
        return _kept(store)


def _kept(store: CorpusStore) -> tuple[str, str]:
    name, fingerprint = store.meta_get("embedder"), store.meta_get("embedder_fingerprint")
    if name is None or fingerprint is None:
        raise InvalidArgument(f"{store.path} is new and has no embedder yet; ingest something first")
    check_label("the embedder that the store keeps", name)
    return name, fingerprint
