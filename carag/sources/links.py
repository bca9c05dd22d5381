"""Find where the links of an HTML page lead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from carag.errors import InvalidArgument
from carag.sources.address import Address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from carag.readers.child import Child


MAX_LINKS: Final = 10_000
"""Greatest number of links of one page that are followed."""


def hrefs(page: bytes) -> tuple[str, list[str]]:
    """Return a page's base address, which may be empty, and the targets of its ``a`` and ``area`` elements, as written.

    Examples
    --------
    >>> hrefs(b"<base href=/b/><a href=x.pdf>X</a><a href='#top'>Top</a>")
    ('/b/', ['x.pdf', '#top'])
    """
    from lxml import etree

    target = _Target()
    parser = etree.HTMLParser(target=target)
    try:
        parser.feed(page)
        parser.close()
    except etree.LxmlError:
        pass  # a page without an element has no links; in a damaged page, those before the damage are found
    return target.base, target.links


def links_of(page: bytes, address: Address, child: Child) -> list[Address]:
    """Return where a page's links lead, each address once, in order, without those that are not web addresses.

    Raises Unreadable if reading the page takes more time or memory than the child may.

    Examples
    --------
    >>> from carag.readers.child import Child
    >>> page = b"<a href=x.pdf>X</a><a href='#top'>Top</a><a href=mailto:a@b.example>Mail</a><a href=x.pdf#2>X</a>"
    >>> with Child() as child:
    ...     [str(one) for one in links_of(page, Address.of("https://example.org/a/"), child)]
    ['https://example.org/a/x.pdf', 'https://example.org/a/']
    """
    stated, links = child.call(hrefs, page)
    base = str(address)
    found: dict[Address, None] = {}
    try:
        base = str(Address.of(stated, base)) if stated else base
    except InvalidArgument:
        return []
    for link in links:
        try:
            found[Address.of(link, base)] = None
        except InvalidArgument:
            continue
        if len(found) == MAX_LINKS:
            break
    return [*found]


class _Target:
    def __init__(self) -> None:
        self.links: list[str] = []
        self.base = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        link = attributes.get("href")
        if link is None:
            return
        if tag in ("a", "area"):
            self.links.append(link)
        elif tag == "base":  # the first counts (HTML Standard, 4.2.3)
            self.base = self.base or link

    def end(self, tag: str) -> None: ...

    def close(self) -> None: ...
