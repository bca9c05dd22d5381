"""Adapt your own generator: any callable that answers from a question and passages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from carag.errors import InvalidArgument, ModelUnavailable
from carag.generation.generator import Draft
from carag.generation.marks import cited_positions
from carag.generation.prompts import INSUFFICIENT_EVIDENCE
from carag.generation.registry import GENERATORS
from carag.limits import check_label, check_text, quoted
from carag.retrieval.evidence import Withheld
from carag.retrieval.model_files import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from carag.generation.generator import Generator
    from carag.retrieval.evidence import Passage


_PORT: Final = ("name", "remote", "fingerprint", "generate")


def own_generator(given: object) -> Generator:
    """Return a generator as it is, and a callable as a generator.

    Parameters
    ----------
    given : Generator or callable
        A callable takes the question, the passages (a tuple of :class:`~carag.retrieval.evidence.Passage`) and what
        is withheld (:class:`~carag.retrieval.evidence.Withheld`, its kinds and topic only), and returns text that cites
        the passages as ``[1]`` or ``[2, 3]``. It may have the attributes ``remote`` (whether question and passages
        leave this machine; False by default), ``name`` and ``fingerprint``.

    Raises
    ------
    InvalidArgument
        If it is neither.

    Examples
    --------
    >>> def first(question, passages, withheld):
    ...     return f"{passages[0].text} [1]"
    >>> own_generator(first).name
    'first'
    """
    if not isinstance(given, type):  # a class has the methods too, but cannot be asked
        if all(hasattr(given, name) for name in _PORT):
            return given  # type: ignore[return-value] # it has the port's members
        if callable(given):
            return OwnGenerator(given)
    raise InvalidArgument(
        f"the generator is {quoted(given)}; want one of {', '.join(GENERATORS)}, an object with {', '.join(_PORT)}, "
        "or a callable (question, passages, withheld) that returns text"
    )


class OwnGenerator:
    """Your own callable as a generator."""

    def __init__(self, given: Callable[..., Any]) -> None:
        self._given = given
        name = getattr(given, "name", None) or getattr(given, "__name__", None) or type(given).__name__
        check_label("the generator's name", name)
        stated = getattr(given, "fingerprint", None)
        if stated is not None:
            check_label(f"the fingerprint of the generator {name!r}", stated)
        self.name = str(name)
        self.remote = bool(getattr(given, "remote", False))
        self.fingerprint = fingerprint("own", self.name, stated or "")

    def generate(self, question: str, passages: Sequence[Passage], withheld: Withheld) -> Draft:
        """Call the callable; a text that cites nothing declines."""
        try:
            text = self._given(question, tuple(passages), Withheld(withheld.kinds, topic=withheld.topic))
        except ModelUnavailable:
            raise
        except Exception as error:
            raise ModelUnavailable(f"the generator {self.name!r} raised {type(error).__name__}") from error
        check_text(f"what the generator {self.name!r} returned", text)
        cited = cited_positions(text)
        return Draft(text, cited) if cited else Draft(INSUFFICIENT_EVIDENCE, ())
