"""Read model files from installed distributions, without importing them.

Importing such a package would run its code, and some open a connection on import; a package's metadata tells where its
files are. Every file is pinned by SHA-256, so what is loaded is what was measured.
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


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """A file in an installed distribution."""

    requirement: str
    """The distribution and its pinned version, ``name==version``."""
    path: str
    """Relative to the site directory."""
    sha256: str
    pip_options: str = ""
    """Further options of the pip command in error messages."""

    def locate(self) -> Path:
        """Return the path of the installed file; ModelUnavailable if it is missing."""
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
        """Read the file; ModelUnavailable if it is missing or its bytes are not the pinned ones."""
        content = self.locate().read_bytes()
        self._check(hashlib.sha256(content).hexdigest())
        return content

    def checked_path(self) -> Path:
        """Return the path of the file once its bytes are checked, for a library that reads files itself."""
        path = self.locate()
        with path.open("rb") as file:
            self._check(hashlib.file_digest(file, "sha256").hexdigest())
        return path

    def _check(self, actual: str) -> None:
        if actual != self.sha256:
            raise ModelUnavailable(
                f"{self.path} has SHA-256 {actual}; want {self.sha256}: it is another version, or was altered; "
                f"{self._remedy}"
            )

    @property
    def _remedy(self) -> str:
        options = f"{self.pip_options} " if self.pip_options else ""
        return f"run: pip install --force-reinstall {options}'{self.requirement}'"


def fingerprint(*parts: str | int) -> str:
    """Hash what a model's output depends on (names, file hashes, settings) to 64 hexadecimal digits."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()


def tokenizer_of(content: str) -> Tokenizer:
    """Read a file saved by Hugging Face's tokenizers, and switch off its cache of texts.

    BPE and Unigram models cache the tokens of 10,000 words in every thread. Llama's tokenizer does not split texts into
    words, so it would cache whole questions: memory would grow, and hold what people asked
    (huggingface/tokenizers#1675).
    """
    from tokenizers import Tokenizer

    found = Tokenizer.from_str(content)
    if found.model.__class__.__name__ in ("BPE", "Unigram"):
        found.model._resize_cache(0)  # noqa: SLF001 - its name since version 0.21, the first to have it
    return found
