"""A target behind HTTP: a mapping in TOML says which request each method is, and where its results are in the reply.

Requests go to the given address alone, each with a limit of time and size; no redirect is followed.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from carag.errors import InvalidArgument
from carag.evaluation.attack.target import Answer, Document, Found, Where, vector_of
from carag.http import send, server_of
from carag.limits import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_REQUEST: Final = {"method", "path", "body", "headers"}
_HITS: Final = {"hits", "id", "score", "total", "suggestions"}
_SECTIONS: Final[dict[str, set[str]]] = {
    "search": _HITS,
    "search_any": _HITS,
    "search_none": _HITS,
    "add": set(),
    "relabel": set(),
    "delete": set(),
    "get": set(),
    "ask": {"answer", "citations"},
}
"""The keys of each section beside those of a request."""
_NEEDED: Final = {"hits", "id", "answer"}
_NAMES: Final = {*("whom", "query", "k", "id", "text", "audience", "vector", "names")}
_PLACE: Final = re.compile(r"\{(\w+)\}")
_VARIABLE: Final = re.compile(r"\$(\w+)")
_SECONDS: Final = 30.0
_MOST: Final = 8 << 20
_BAD: Final = 400


class HttpTarget:
    """A service, asked as a mapping says.

    Parameters
    ----------
    address : str
        Such as ``http://127.0.0.1:8000``.
    mapping : Path
        A TOML file with the sections ``search`` and ``add``, and any of ``search_any`` with ``search_none``,
        ``relabel``, ``delete``, ``get`` and ``ask``; ``[people]`` says what is sent as ``{whom}`` for two readers.

    Raises
    ------
    InvalidArgument
        If the file cannot be read as a mapping, or holds an unknown key.
    """

    def __init__(self, address: str, mapping: Path) -> None:
        try:
            self._server = server_of(address)[0]
            said = tomllib.loads(mapping.read_text("utf-8"))
        except (ValueError, KeyError, OSError) as error:
            raise InvalidArgument(f"the target {quoted(address)} with {mapping}: {error}") from error
        self._people, self._headers = (
            {name: _secret(str(value)) for name, value in said.pop(table, {}).items()}
            for table in ("people", "headers")
        )
        self._said: dict[str, dict[str, Any]] = said
        _check(mapping, said, self._people)
        self.people = tuple(self._people)
        for name in ("relabel", "delete", "get", "ask"):
            if name not in said:
                setattr(self, name, None)
        if not {"search_any", "search_none"} <= said.keys():
            self.search_where = None  # type: ignore[method-assign, assignment] # a method that it does not have

    def add(self, documents: Sequence[Document]) -> None:
        """Send one request for each document."""
        for one in documents:
            values = {"id": one.id, "text": one.text, "audience": sorted(one.audience)}
            self._sent("add", {**values, "vector": vector_of(one.text).tolist()})

    def search(self, query: str, k: int, as_whom: str | None) -> Found:
        """Search."""
        return self._searched("search", query, k, as_whom)

    def search_where(self, query: str, k: int, as_whom: str | None, where: Where) -> Found:
        """Search as the section for one of the names says, or as that for none of them."""
        section = "search_none" if where.negated else "search_any"
        return self._searched(section, query, k, as_whom, names=sorted(where.names))

    def _searched(self, section: str, query: str, k: int, as_whom: str | None, **more: object) -> Found:
        values = {"query": query, "k": k, "whom": as_whom, "vector": vector_of(query).tolist(), **more}
        reply, said = self._sent(section, values), self._said[section]
        hits = _at(reply, said.get("hits", ""))
        if not isinstance(hits, list):
            raise TypeError(
                f"the reply holds {quoted(hits)} at {said.get('hits', '')!r}; want a list of hits"
            )
        score, total, told = (said.get(name) for name in ("score", "total", "suggestions"))
        return Found(
            [(str(_at(hit, said["id"])), None if score is None else _at(hit, score)) for hit in hits],
            None if total is None else _at(reply, total),
            None if told is None else _at(reply, told),
        )

    def relabel(self, name: str, audience: frozenset[str]) -> None:
        """Send one request."""
        self._sent("relabel", {"id": name, "audience": sorted(audience)})

    def delete(self, ids: Sequence[str]) -> None:
        """Send one request for each document."""
        for one in ids:
            self._sent("delete", {"id": one})

    def get(self, name: str, as_whom: str) -> object:
        """Return the whole reply."""
        return self._sent("get", {"id": name, "whom": as_whom})

    def ask(self, question: str, as_whom: str) -> Answer:
        """Ask."""
        said, reply = self._said["ask"], self._sent("ask", {"query": question, "whom": as_whom})
        cited = said.get("citations")
        return Answer(_at(reply, said["answer"]), None if cited is None else _at(reply, cited))

    def _sent(self, section: str, values: dict[str, Any]) -> Any:
        said = self._said[section]
        whom = values.get("whom")
        values["whom"] = self._people.get(whom, whom)
        path = _PLACE.sub(lambda found: quote(str(values[found[1]]), safe=""), said["path"])
        # What is None, which is a reader that was not named, is left out.
        own = {name: _secret(str(one)) for name, one in said.get("headers", {}).items()}
        headers = _filled({**self._headers, **own}, values)
        body = None
        if "body" in said:
            body = json.dumps(_filled(said["body"], values)).encode()
            headers.setdefault("Content-Type", "application/json")
        method = said.get("method", "POST")
        reply = send(method, self._server, path, headers, body, seconds=_SECONDS, most=_MOST)
        text = (reply.body or b"").decode("utf-8", "replace")
        if reply.status >= _BAD:
            raise ValueError(f"HTTP {reply.status} {text[:200]}")
        return json.loads(text) if text.strip() else None


def _check(file: Path, said: Mapping[str, Any], people: Mapping[str, str]) -> None:
    """Check a mapping before anything is sent."""
    wrong = [f"the section {one} is missing" for one in ("search", "add") if one not in said]
    for section, keys in said.items():
        known = _SECTIONS.get(section)
        if known is None or not isinstance(keys, dict):
            wrong.append(f"{section} is unknown; want people, headers, {', '.join(_SECTIONS)}")
            continue
        allowed = sorted(known | _REQUEST)
        wrong += [
            f"{section}.{one} is unknown; want {', '.join(allowed)}" for one in keys if one not in allowed
        ]
        wrong += [f"{section}.{one} is missing" for one in sorted(_NEEDED & known - keys.keys())]
        if not str(keys.get("path", "")).startswith("/"):
            wrong.append(f"{section}.path must begin with a slash")
        strange = {*_PLACE.findall(json.dumps(keys, default=str))} - _NAMES
        wrong += [f"{section} has {{{one}}}; want {', '.join(sorted(_NAMES))}" for one in sorted(strange)]
    if people and len(people) != 2:
        wrong.append(f"people names {len(people)} readers; want 2")
    if wrong:
        raise InvalidArgument(f"the mapping {file}: {'; '.join(wrong)}")


def _secret(value: str) -> str:
    """Put in the values of the environment's variables that follow a dollar sign."""
    if missing := sorted({*_VARIABLE.findall(value)} - os.environ.keys()):
        raise InvalidArgument(f"the mapping names {', '.join(missing)}, which the environment does not set")
    return _VARIABLE.sub(lambda found: os.environ[found[1]], value)


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Put values into a template; what stands alone keeps its type."""
    if isinstance(template, dict):
        filled = {name: _filled(one, values) for name, one in template.items()}
        return {name: one for name, one in filled.items() if one is not None}
    if isinstance(template, list):
        return [_filled(one, values) for one in template]
    names = _PLACE.findall(template) if isinstance(template, str) else []
    if not names or template == f"{{{names[0]}}}":
        return values[names[0]] if names else template
    missing = any(values[one] is None for one in names)
    return None if missing else _PLACE.sub(lambda found: str(values[found[1]]), template)


def _at(value: Any, path: str) -> Any:
    """Return what stands at a path such as ``result.hits.0``; an empty path is the whole."""
    for step in filter(None, path.split(".")):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value
