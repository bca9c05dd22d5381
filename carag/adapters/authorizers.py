"""Let Cedar or Rego policies decide about documents: an authorizer for each, for ``Engine.open(authorizer=)``.

Both decide in this process. An authority over HTTP takes a few lines (``docs/how-to/ask-an-authority.md``).
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument, MissingExtra
from carag.limits import quoted
from carag.policy.audience import GROUP, Audience

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


__all__ = ["CedarAuthorizer", "RegoAuthorizer"]

_PERSON: Final = "user"
_EVERYBODY: Final = ""
_PRINCIPALS: Final = {"User": _PERSON, "Group": GROUP}
"""Types of Cedar's entities, and kinds of principals."""
_ALTERED: Final = {'"', "\\"}
"""Characters that regopy does not return as they were given."""


class CedarAuthorizer:
    """Allows what Cedar policies permit one ``User`` to do with a ``Document``.

    The session's one principal of the kind ``user`` is the request's principal, a member of one ``Group`` for each of
    the session's groups. A document about which any policy fails to be evaluated is not allowed, because the policy
    that failed may be the one that forbids it.

    Parameters
    ----------
    policies : str
        Cedar policies.
    documents : callable
        Takes document ids and returns their Cedar entities, with what these are in, as ``is_authorized`` of cedarpy
        takes them: mappings with ``uid``, ``attrs`` and ``parents``.
    action : str
        The id of the action.

    Raises
    ------
    InvalidArgument
        If the policies cannot be parsed.
    MissingExtra
        If cedarpy is not installed.

    Examples
    --------
    >>> def entities(ids):
    ...     return [{"uid": {"type": "Document", "id": one}, "attrs": {}, "parents": []} for one in ids]
    >>> only = 'permit(principal in Group::"desk", action, resource == Document::"memo");'
    >>> cedar = CedarAuthorizer(only, entities)
    >>> cedar.allowed(frozenset({"user:ana", "group:desk"}), ["memo", "note"])
    [True, False]
    """

    name = "cedar/1"

    def __init__(
        self,
        policies: str,
        documents: Callable[[Sequence[str]], Iterable[Mapping[str, Any]]],
        *,
        action: str = "read",
    ) -> None:
        try:
            import cedarpy
        except ImportError as error:
            raise MissingExtra("Cedar policies need cedarpy; install carag-engine[cedar]") from error
        try:
            self._policies = cedarpy.PolicySet.from_str(policies)
        except ValueError as error:
            raise InvalidArgument(f"policies are not valid Cedar: {error}; correct them") from error
        self._decide: Callable[..., Any] = cedarpy.is_authorized_batch
        self._partly: Callable[..., Any] = cedarpy.is_authorized_partial
        self._documents = documents
        self._action = {"type": "Action", "id": action}

    def allowed(self, principals: frozenset[str], document_ids: Sequence[str], /) -> list[bool]:
        """See :class:`carag.retrieval.authority.Authorizer`; InvalidArgument unless there is exactly one user."""
        persons, groups = (_ids(principals, kind) for kind in (_PERSON, GROUP))
        if len(persons) != 1:
            raise InvalidArgument(
                f"the session has {len(persons)} principals of the kind user; Cedar wants one"
            )
        who = {"type": "User", "id": persons[0]}
        held = {"uid": who, "attrs": {}, "parents": [{"type": "Group", "id": one} for one in groups]}
        requests = [
            {
                "principal": who,
                "action": self._action,
                "resource": {"type": "Document", "id": one},
                "context": {},
            }
            for one in document_ids
        ]
        found = self._decide(requests, self._policies, [held, *self._documents(document_ids)])
        return [bool(one.allowed) and not one.diagnostics.errors for one in found]

    def audiences(self, document_ids: Sequence[str]) -> list[Audience | None]:
        """Return who may see each document, as lists for a :class:`carag.Document`; None where no lists can say it.

        The policies are evaluated with the principal left open. What is left is a list if it asks only whether the
        principal is, or is in, one of several entities; a policy that asks for two of them at once, or for an attribute
        of the principal, is not, and the document is to be left to :meth:`allowed`. cedarpy 4.12 calls this evaluation
        experimental, so compare both ways when it is updated.

        Examples
        --------
        >>> def entities(ids):
        ...     return [{"uid": {"type": "Document", "id": one}, "attrs": {}, "parents": []} for one in ids]
        >>> policies = 'permit(principal in Group::"desk", action, resource);'
        >>> policies += 'forbid(principal == User::"bo", action, resource == Document::"memo");'
        >>> [one.text for one in CedarAuthorizer(policies, entities).audiences(["memo", "note"])]
        ['{"allow":["group:desk"],"deny":["user:bo"]}', '{"allow":["group:desk"],"deny":[]}']
        """
        entities = [*self._documents(document_ids)]
        action = f"Action::{json.dumps(self._action['id'])}"
        found = []
        for one in document_ids:
            request = {"action": action, "resource": f"Document::{json.dumps(one)}", "context": {}}
            said = self._partly(request, self._policies, entities)
            found.append(None if said.diagnostics.errors else _audience_of(said.residuals.values()))
        return found


class RegoAuthorizer:
    """Allows the documents in the set that a Rego rule makes of ``input.principals`` and ``input.documents``.

    A document whose id has a quotation mark or a backslash is not allowed: regopy 1.5.2 returns such texts altered, or
    not at all, and an altered one may be another document's id.

    Parameters
    ----------
    module : str
        A Rego module.
    rule : str
        The rule's full name, such as ``"data.sharing.allowed"``.
    data : mapping
        What the module finds under ``data``, as JSON values.

    Raises
    ------
    InvalidArgument
        If the module cannot be parsed.
    MissingExtra
        If regopy is not installed.

    Examples
    --------
    >>> module = '''
    ... package sharing
    ... import rego.v1
    ... allowed contains id if { some id in input.documents; data.owners[id] in input.principals }
    ... '''
    >>> rego = RegoAuthorizer(module, "data.sharing.allowed", {"owners": {"memo": "group:desk"}})
    >>> rego.allowed(frozenset({"user:ana", "group:desk"}), ["memo", "note"])
    [True, False]
    """

    name = "rego/1"

    def __init__(self, module: str, rule: str, data: Mapping[str, Any]) -> None:
        try:
            import regopy
        except ImportError as error:
            raise MissingExtra("Rego policies need regopy; install carag-engine[rego]") from error
        self._new: Callable[[], Any] = regopy.Interpreter
        self._module, self._rule, self._data = module, rule, dict(data)
        self._own = threading.local()  # an interpreter keeps its input, so each thread has its own
        try:
            self._interpreter()
        except regopy.RegoError as error:
            raise InvalidArgument(f"module is not valid Rego: {error}; correct it") from error

    def allowed(self, principals: frozenset[str], document_ids: Sequence[str], /) -> list[bool]:
        """See :class:`carag.retrieval.authority.Authorizer`; InvalidArgument if the rule does not make a set of ids."""
        interpreter = self._interpreter()
        plain = [one for one in document_ids if not _ALTERED & {*one}]
        interpreter.set_input({"principals": sorted(principals), "documents": plain})
        said = str(interpreter.query(self._rule))
        match {} if said == "undefined" else json.loads(said):
            case {"expressions": [list(found)]} if all(isinstance(one, str) for one in found):
                return [one in found and one in plain for one in document_ids]
        raise InvalidArgument(
            f"{quoted(self._rule)} did not make a set of document ids; correct the Rego module"
        )

    def _interpreter(self) -> Any:
        if not hasattr(self._own, "interpreter"):
            made = self._new()
            made.add_module("carag", self._module)
            made.add_data(self._data)
            self._own.interpreter = made
        return self._own.interpreter


class _NotAListError(Exception):
    """A condition that no list of principals expresses."""


def _audience_of(residuals: Iterable[Mapping[str, Any]]) -> Audience | None:
    """Read what is left of policies; None if no lists express it."""
    permitted, forbidden = set[str](), set[str]()
    is_for_all = False
    try:
        for one in residuals:
            names = {_EVERYBODY}
            for condition in one["conditions"]:
                names = _both(names, _named(condition["body"], negated=condition["kind"] == "unless"))
            if one["effect"] == "forbid":
                forbidden |= names
            else:
                permitted |= names - {_EVERYBODY}
                is_for_all = is_for_all or _EVERYBODY in names
    except (_NotAListError, KeyError, TypeError):
        return None
    if _EVERYBODY in forbidden:
        return Audience(allow=[])
    try:
        return Audience(None if is_for_all else permitted, forbidden)
    except InvalidArgument:  # a name that is not one of a principal here
        return None


def _named(body: Mapping[str, Any], *, negated: bool = False) -> set[str]:
    """Return the principals that meet a condition, each by itself; the empty name stands for everybody."""
    ((operator, given),) = body.items()
    if operator == "!":
        return _named(given["arg"], negated=not negated)
    if operator == "Value" and isinstance(given, bool):
        return {_EVERYBODY} if given is not negated else set()
    if operator in {"&&", "||"}:
        left, right = (_named(given[side], negated=negated) for side in ("left", "right"))
        return _both(left, right) if (operator == "&&") is not negated else left | right
    if operator not in {"==", "in", "is"} or "unknown" not in given["left"]:
        raise _NotAListError
    if operator == "is":
        return {_EVERYBODY} if (given["entity_type"] == "User") is not negated else set()
    if negated:
        raise _NotAListError
    values = given["right"]["Set"] if "Set" in given["right"] else [given["right"]]
    entities = [one["Value"]["__entity"] for one in values]
    if operator == "==":  # a user equals no group
        entities = [one for one in entities if one["type"] != "Group"]
    return {f"{_PRINCIPALS[one['type']]}:{one['id']}" for one in entities}


def _both(left: set[str], right: set[str]) -> set[str]:
    if _EVERYBODY in left or _EVERYBODY in right:
        return right if _EVERYBODY in left else left
    if left and right and left != right:
        raise _NotAListError
    return left & right


def _ids(principals: frozenset[str], kind: str) -> list[str]:
    return sorted(one.removeprefix(f"{kind}:") for one in principals if one.startswith(f"{kind}:"))
