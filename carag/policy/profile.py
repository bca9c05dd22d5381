"""Open a profile: the folder that says what a domain's bits mean and who may use what for which purpose.

A profile is data, never code: ``profile.toml`` and ``roles.toml``. ``reading.toml`` and its tables decide the order of
what is found, and are not part of the policy's hash.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.policy.bits import nearest
from carag.policy.shipped import DEFAULT_PROFILE, READING_FILES, SHIPPED, shipped_reading, shipped_text
from carag.policy.table import PolicyTable
from carag.policy.toml_lines import Toml
from carag.policy.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self


_MAX_BYTES: Final = 1 << 20
"""Greatest size of a file of a profile."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The vocabulary and the table of one domain.

    ``reading`` holds the texts of ``reading.toml``, ``kinds.tsv`` and ``lexicon.tsv``, by name, if the profile has
    them.

    Examples
    --------
    >>> generic = Profile.open("generic")
    >>> generic.name, [bit.name for bit in generic.vocabulary.flags][:3]
    ('generic', ['INTERNAL', 'CONFIDENTIAL', 'SECRET'])
    """

    table: PolicyTable
    texts: tuple[str, str]
    is_shipped: bool = False
    reading: Mapping[str, str] = field(default_factory=dict)

    @property
    def vocabulary(self) -> Vocabulary:
        """What its bits, words and calendar mean."""
        return self.table.vocabulary

    @property
    def name(self) -> str:
        """The name that a store records."""
        return self.vocabulary.profile

    @property
    def bits_sha256(self) -> str:
        """Hex digest of what a store keeps permanently: positions, names and meanings of bits, lifecycle, metadata."""
        said = [[bit.name, self.vocabulary.meanings[bit.name].document] for bit in self.vocabulary.flags]
        declared: list[object] = (
            [sorted(self.vocabulary.metadata.items())] if self.vocabulary.metadata else []
        )
        # A store records what acts set under these bits. Profiles without a lifecycle keep their earlier hash.
        if lifecycle := self.vocabulary.lifecycle.names:
            declared.append({"lifecycle": lifecycle})
        return hashlib.sha256(
            json.dumps([self.name, said, *declared], ensure_ascii=True).encode()
        ).hexdigest()

    @classmethod
    def open(cls, profile: str | PathLike[str] | Profile = DEFAULT_PROFILE) -> Profile:
        """Open a profile, given the name of one that ships with the package or the path of a folder."""
        if isinstance(profile, Profile):
            return profile
        if isinstance(profile, str):
            if profile in SHIPPED:
                return cls.shipped(profile)
            if not any(sign in profile for sign in ("/", "\\", ".")):
                raise InvalidArgument(
                    f"no profile {quoted(profile)} ships with CARAG; {nearest(profile, SHIPPED)}; or give the path of "
                    "a folder with profile.toml and roles.toml, such as ./NAME"
                )
        elif not isinstance(profile, PathLike):
            raise InvalidArgument(
                f"profile is {quoted(profile)}; want the name of a profile, one of {', '.join(SHIPPED)}, or the path "
                "of a folder with profile.toml and roles.toml"
            )
        folder = Path(profile)
        reading = {name: _read(folder / name) for name in READING_FILES if (folder / name).exists()}
        return cls.from_texts(_read(folder / "profile.toml"), _read(folder / "roles.toml"), reading)

    @classmethod
    def shipped(cls, name: str) -> Self:
        """Open one of ``SHIPPED``."""
        texts = (shipped_text(name, "profile.toml"), shipped_text(name, "roles.toml"))
        return cls(PolicyTable.shipped(name), texts, is_shipped=True, reading=shipped_reading(name))

    @classmethod
    def from_texts(cls, profile: str, roles: str, reading: Mapping[str, str] | None = None) -> Self:
        """Make a profile from the texts of its two files and of the files that say how questions are read."""
        vocabulary = Vocabulary.from_toml(profile)
        made = cls(PolicyTable.from_toml(roles, vocabulary), (profile, roles), reading=dict(reading or {}))
        kinds = vocabulary.kinds
        toml = Toml("profile.toml", profile)
        for kind in fields(kinds):
            for purpose in sorted(getattr(kinds, kind.name)):
                if purpose not in made.table.purposes:
                    with toml.at("purposes", kind.name):
                        raise InvalidArgument(
                            f"it names {purpose!r}, which no cell of roles.toml has; "
                            f"{nearest(purpose, made.table.purposes)}"
                        )
        if made.name in SHIPPED and made.bits_sha256 != cls.shipped(made.name).bits_sha256:
            with toml.at("name"):
                raise InvalidArgument(
                    f"{made.name!r} ships with CARAG and has different bits or metadata; give your profile another name"
                )
        return made


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InvalidArgument(
                f"{path} is larger than {_MAX_BYTES} bytes, the limit of a profile's file; shorten it"
            )
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidArgument(f"{path.name}, line {line}: not UTF-8: {error}; save it as UTF-8") from error
    except OSError as error:
        raise InvalidArgument(
            f"cannot read {path}: {error}; a profile is a folder with profile.toml and roles.toml in UTF-8"
        ) from error
