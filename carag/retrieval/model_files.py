"""Read model files out of installed distributions, without importing them.

Importing such a package would run its code (some open a connection on import); its metadata says where its files are
without that. Every file is pinned by SHA-256, so what is loaded is what was measured.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from carag.errors import ModelUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["PackagedFile", "fingerprint", "tokenizer_of"]


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file inside an installed distribution.

    Parameters
    ----------
    requirement : str
        The distribution and its pinned version, ``name==version``, as pip takes it.
    path : str
        The file, relative to the site directory.
    sha256 : str
        The SHA-256 of its bytes, in hexadecimal.
    pip_options : str
        Further options of the pip command.
    """

    requirement: str
    path: str
    sha256: str
    pip_options: str = ""

    def locate(self) -> Path:
        """Return the path of the installed file without reading it.

        Raises
        ------
        ModelUnavailable
            If the distribution is not installed or lacks the file.
        """
        name = self.requirement.partition("==")[0]
        try:
            found = distribution(name).locate_file(self.path)
        except PackageNotFoundError as absent:
            raise ModelUnavailable(f"the package {name} is not installed; {self._remedy}") from absent
        path = Path(str(found))
        if not path.is_file():
            raise ModelUnavailable(f"{name} is installed without {self.path}; {self._remedy}")
        return path

    def read(self) -> bytes:
        """Read the file once, and check the bytes read.

        Raises
        ------
        ModelUnavailable
            If the file is missing or its bytes are not the pinned ones.
        """
        content = self.locate().read_bytes()
        self._check(hashlib.sha256(content).hexdigest())
        return content

    def checked_path(self) -> Path:
        """Return the path of the file after checking its content, for a library that reads files itself.

        Raises
        ------
        ModelUnavailable
            If the file is missing or its bytes are not the pinned ones.
        """
        path = self.locate()
        with path.open("rb") as file:
            self._check(hashlib.file_digest(file, "sha256").hexdigest())
        return path

    def _check(self, actual: str) -> None:
        if actual != self.sha256:
            raise ModelUnavailable(
                f"{self.path} has SHA-256 {actual}, want {self.sha256}: another version, or altered; "
                f"{self._remedy}"
            )

    @property
    def _remedy(self) -> str:
        options = f"{self.pip_options} " if self.pip_options else ""
        return f"run: pip install --force-reinstall {options}'{self.requirement}'"


def fingerprint(*parts: str | int) -> str:
    """Hash what a model's output depends on (names, file hashes, settings) to 64 hexadecimal digits.

    Examples
    --------
    >>> fingerprint("minilm", 1) == fingerprint("minilm", 1) != fingerprint("minilm", 2)
    True
    """
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()


def tokenizer_of(content: str) -> Tokenizer:
    """Read what Hugging Face's tokenizers save; it keeps nothing of the texts that it is given later.

    Models of the kinds BPE and Unigram keep 10,000 words of every thread with their tokens. Where a text is not split
    into words before, as Llama's is not, each question is one: memory would grow, and hold what people asked. A
    capacity of 0 switches that off (huggingface/tokenizers#1675).
    """
    from tokenizers import Tokenizer

    found = Tokenizer.from_str(content)
    if found.model.__class__.__name__ in ("BPE", "Unigram"):
        found.model._resize_cache(0)  # noqa: SLF001 - its name in version 0.21, the first to have it, and since
    return found
