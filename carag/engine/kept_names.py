"""Give a store a public table of companies' names, by which questions are read whatever the store holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from carag.engine.kept_profile import profile_of
from carag.errors import InvalidArgument
from carag.retrieval.public_names import PublicNames
from carag.retrieval.reading import Declared
from carag.store.store import CorpusStore

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["keep_names"]


def keep_names(directory: str | PathLike[str], content: bytes, file: str) -> PublicNames:
    """Keep a table of names in a store that no engine holds open, in place of an older one; return it.

    Parameters
    ----------
    directory : path
        Of the store.
    content : bytes
        SEC's ``company_tickers.json``, or JSON lines; see :meth:`carag.retrieval.public_names.PublicNames.parse`.
    file : str
        How messages call it.

    Raises
    ------
    InvalidArgument
        If the table is not valid, or the store's profile reads no companies.
    """
    profile = profile_of(directory)
    if not Declared.of(profile).companies:
        raise InvalidArgument(
            f"the profile {profile.name!r} of {directory} reads no companies in questions; a table of names is for a "
            "store of filings"
        )
    names = PublicNames.parse(content, file)
    with CorpusStore.open(Path(directory, "corpus.db"), create=False) as store:
        names.keep(store)
    return names
