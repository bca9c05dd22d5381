"""Read groups from SCIM 2.0: Group resources (RFC 7643 section 4.2), in list responses (RFC 7644) or by themselves.

The group with the id ``4f2`` is the principal ``group:4f2``; a member whose ``value`` is ``9ab`` is ``user:9ab`` or
``group:9ab``, as its ``type`` (``User`` or ``Group``) or the path of its ``$ref`` says. Display names can change, so
none becomes a principal. Each resource states all members of its group, without limit in time.

A group without ``members`` is refused, because a server leaves the field out also when it was not asked for; and so is
a list response without its further pages. To read either would end memberships that the server still has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument
from carag.limits import quoted
from carag.policy.groups.statements import ALWAYS, GroupStatement

if TYPE_CHECKING:
    from collections.abc import Iterator

_GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
_LIST: Final = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
_GROUP_FIELDS: Final = frozenset({"schemas", "id", "externalId", "meta", "displayName", "members"})
_LIST_FIELDS: Final = frozenset({"schemas", "totalResults", "startIndex", "itemsPerPage", "Resources"})
_MEMBER_FIELDS: Final = frozenset({"value", "type", "$ref", "display"})
_KINDS: Final = {"User": "user", "Group": "group"}
_PATHS: Final = {"Users": "User", "Groups": "Group"}


def scim_groups(value: Any, file: str) -> Iterator[tuple[str, GroupStatement]]:
    """Read parsed JSON: a Group, a list response, or a list of either, whose list responses are the pages of one.

    Yields each statement with its place. Raises InvalidArgument, naming the resource, for anything else.

    Examples
    --------
    >>> group = {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:Group"], "id": "4f2", "members": []}
    >>> list(scim_groups(group, "groups.json"))
    [('groups.json, resource 1', GroupStatement('group:4f2', members=0))]
    """
    number = 0
    pages: list[tuple[dict[str, Any], int]] = []
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict) and one.get("schemas") == [_LIST]:
            resources = _resources(one, len(pages) + 1, file)
            pages.append((one, len(resources)))
        else:
            resources = [one]
        for resource in resources:
            number += 1
            place = f"{file}, resource {number}"
            try:
                yield place, _statement(resource)
            except InvalidArgument as error:
                raise InvalidArgument(f"{place}: {error}") from error
    _check_pages(pages, file)


def _resources(page: dict[str, Any], number: int, file: str) -> list[Any]:
    place = f"{file}, list response {number}"
    _check_fields(page, _LIST_FIELDS, place)
    for name in ("totalResults", "startIndex", "itemsPerPage"):
        found = page.get(name, 1 if name != "totalResults" else None)
        if type(found) is not int or found < 0:
            raise InvalidArgument(f"{place}: {name} is {quoted(found)}; want a whole number")
    resources = page.get("Resources", [])
    if not isinstance(resources, list):
        raise InvalidArgument(f"{place}: Resources is {quoted(resources)}; want a list of groups")
    return resources


def _check_pages(pages: list[tuple[dict[str, Any], int]], file: str) -> None:
    """Check that list responses are all pages of one list, in order."""
    due = 1
    for number, (page, count) in enumerate(pages, start=1):
        place, total = f"{file}, list response {number}", pages[0][0]["totalResults"]
        if page["totalResults"] != total or page.get("startIndex", 1) != due:
            raise InvalidArgument(
                f"{place} begins at {page.get('startIndex', 1)} of {page['totalResults']}, but {due} of {total} is "
                "due; give all pages of one list, in order"
            )
        due += count
    if pages and due - 1 != pages[0][0]["totalResults"]:
        raise InvalidArgument(
            f"{file} has {due - 1} of the {pages[0][0]['totalResults']} groups that the server counted; fetch all "
            "pages, and give them as one list"
        )


def _statement(resource: Any) -> GroupStatement:
    if not isinstance(resource, dict) or resource.get("schemas") != [_GROUP]:
        raise InvalidArgument(
            f"its schemas are not [{_GROUP!r}]; give Group resources, or a ListResponse of them"
        )
    _check_fields(resource, _GROUP_FIELDS, "a Group")
    group = _id("id", resource.get("id"))
    members = resource.get("members")
    if not isinstance(members, list):
        raise InvalidArgument(
            f"group {quoted(group)} has no list of members; fetch it with its members, or write an empty list"
        )
    found = [_member(one) for one in members]
    if len({*found}) < len(found):
        raise InvalidArgument(f"group {quoted(group)} has a member twice; give each once")
    return GroupStatement(f"group:{group}", dict.fromkeys(found, ALWAYS))


def _member(one: Any) -> str:
    if not isinstance(one, dict):
        raise InvalidArgument(f"a member is {quoted(one)}; want an object with value and type")
    _check_fields(one, _MEMBER_FIELDS, "a member")
    value = _id("value", one.get("value"))
    kinds = [one["type"]] if "type" in one else []
    if "$ref" in one:
        path = str(one["$ref"]).split("/")
        kinds.append(_PATHS.get(path[-2]) if len(path) > 1 else None)
    if kinds not in ([kind] * max(len(kinds), 1) for kind in _KINDS):
        raise InvalidArgument(
            f"member {quoted(value)} has the type {quoted(one.get('type'))} and the $ref {quoted(one.get('$ref'))}; "
            "want the type 'User' or 'Group', or a $ref that ends in /Users/ID or /Groups/ID, or both if they agree"
        )
    return f"{_KINDS[kinds[0]]}:{value}"


def _id(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidArgument(f"{name} is {quoted(value)}; want the id that the server gives")
    return value


def _check_fields(said: dict[str, Any], allowed: frozenset[str], what: str) -> None:
    if unknown := sorted(said.keys() - allowed):
        raise InvalidArgument(f"{what} has a field {quoted(unknown[0])}; want {', '.join(sorted(allowed))}")
