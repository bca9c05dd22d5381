"""Write formulas as Python expressions, and work them out in decimal arithmetic with every step shown."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Constant", "Dimension", "Expression", "Operand", "average", "rounded"]

_CONTEXT: Final = Context(prec=34, rounding=ROUND_HALF_UP)
"""Precision of IEEE 754 decimal128: far more digits than any statement prints, so only the end is rounded."""


_DAYS_OF_A_YEAR: Final = (360, 365, 366)


@dataclass(frozen=True, slots=True)
class Dimension:
    """What a formula results in, as powers of its units."""

    money: int = 0
    tens: int = 0
    """Powers of ten, such as 100, which turns a share into a percentage."""
    days: int = 0
    """Of the days of a year."""


class Expression:
    """A formula or a part of one."""

    def __add__(self, other: Expression) -> Expression:
        return _Step("+", self, other)

    def __sub__(self, other: Expression) -> Expression:
        return _Step("-", self, other)

    def __mul__(self, other: Expression) -> Expression:
        return _Step("*", self, other)

    def __truediv__(self, other: Expression) -> Expression:
        return _Step("/", self, other)

    def operands(self) -> Iterator[Operand]:
        """Yield the operands from left to right, repeated ones too."""
        raise NotImplementedError

    def dimension(self) -> Dimension | None:
        """Return what it results in; None if it adds things that do not go together, such as an amount and a number."""
        raise NotImplementedError

    def value(self, of: Callable[[Operand], Decimal]) -> Decimal | None:
        """Work it out; None if it divides by zero."""
        raise NotImplementedError

    def shown(self, of: Callable[[Operand], str], *, inside: str = "") -> str:
        """Write it, with a string for each operand."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """A number that belongs to the formula, such as 365 days."""

    of: Decimal

    def operands(self) -> Iterator[Operand]:
        """Yield nothing."""
        yield from ()

    def dimension(self) -> Dimension:
        """Return that of the days of a year, of a power of ten, or of a plain number."""
        is_power = self.of > 0 and _CONTEXT.scaleb(self.of, -self.of.adjusted()) == 1
        return Dimension(tens=self.of.adjusted() if is_power else 0, days=int(self.of in _DAYS_OF_A_YEAR))

    def value(self, of: Callable[[Operand], Decimal]) -> Decimal:  # noqa: ARG002 - depends on no operand
        """Return the number."""
        return self.of

    def shown(self, of: Callable[[Operand], str], *, inside: str = "") -> str:  # noqa: ARG002 - as above
        """Write the number."""
        return str(self.of)


@dataclass(frozen=True, slots=True)
class Operand(Expression):
    """An entry of a statement, for the year asked about or an earlier one."""

    concept: str
    """Its name in :data:`carag.generation.figures.concepts.CONCEPTS`."""
    years_before: int = 0
    is_paid: bool = False
    """Whether it is a cost or a payment, which statements print in parentheses or not; its sign is dropped."""
    must_be_positive: bool = False
    """Whether a value of zero or less makes the formula meaningless."""

    def operands(self) -> Iterator[Operand]:
        """Yield itself."""
        yield self

    def dimension(self) -> Dimension:
        """Return that of an amount."""
        return Dimension(money=1)

    def value(self, of: Callable[[Operand], Decimal]) -> Decimal:
        """Return its value."""
        return of(self)

    def shown(self, of: Callable[[Operand], str], *, inside: str = "") -> str:  # noqa: ARG002 - never in parentheses
        """Write its value."""
        return of(self)


@dataclass(frozen=True, slots=True)
class _Step(Expression):
    sign: Literal["+", "-", "*", "/"]
    left: Expression
    right: Expression

    def operands(self) -> Iterator[Operand]:
        yield from self.left.operands()
        yield from self.right.operands()

    def dimension(self) -> Dimension | None:
        left, right = self.left.dimension(), self.right.dimension()
        if left is None or right is None or self.sign in "+-":
            return left if left == right else None
        power = 1 if self.sign == "*" else -1
        return Dimension(
            left.money + power * right.money, left.tens + power * right.tens, left.days + power * right.days
        )

    def value(self, of: Callable[[Operand], Decimal]) -> Decimal | None:
        left, right = self.left.value(of), self.right.value(of)
        if left is None or right is None or (self.sign == "/" and right == 0):
            return None
        work = {
            "+": _CONTEXT.add,
            "-": _CONTEXT.subtract,
            "*": _CONTEXT.multiply,
            "/": _CONTEXT.divide,
        }[self.sign]
        return work(left, right)

    def shown(self, of: Callable[[Operand], str], *, inside: str = "") -> str:
        left, right = (
            self.left.shown(of, inside="<" + self.sign),
            self.right.shown(of, inside=">" + self.sign),
        )
        text = f"{left} {self.sign} {right}"
        return text if not inside or _binds(self.sign, inside) else f"({text})"


def _binds(own: str, inside: str) -> bool:
    """Tell whether a step needs no parentheses on the left (<) or right (>) of another."""
    side, outer = inside[0], inside[1]
    if own in "*/":
        return outer in "+-" or side == "<"
    return outer in "+-" and (side == "<" or outer == "+")


def average(one: Expression, other: Expression) -> Expression:
    """Make the mean of two expressions."""
    return (one + other) / Constant(Decimal(2))


def rounded(value: Decimal, places: int) -> Decimal:
    """Round half away from zero, to a number of decimals."""
    return value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP, context=_CONTEXT)
