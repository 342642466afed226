"""SQL filters: RabbitMQ's dialect of AMQP Filter Expressions 1.0, section 6.

An expression becomes a function of a message's properties. Its value is a boolean, a number, bytes, or None
for unknown: so `AND`, `OR` and `NOT` have three values. Keywords are in upper case. The grammar, from the
weakest operator to the strongest: OR; AND; NOT; one comparison, LIKE, IN or IS NULL; + and -; * / and %; one
sign. Only what has no comparison, or is in parentheses, can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from math import isfinite
from operator import ge, gt, le, lt
from typing import Any, Final, TypeAlias

from fakeamqp.protocols.amqp_1_0.filters.fields import IllFormed
from fakeamqp.protocols.amqp_1_0.filters.like import like
from fakeamqp.protocols.amqp_1_0.filters.values import FIELDS, application_property, equal, field_of
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties
from fakeamqp.protocols.base.codec import encoded

Expression: TypeAlias = "Callable[[SectionProperties], Any]"

_LONGEST: Final = 4096
_MOST_TOKENS: Final = 200
_DEFAULT_PRIORITY: Final = 4
_NAME = r"[a-zA-Z][a-zA-Z0-9_]*"
_TOKEN: Final = re.compile(
    rf"""
    (?P<space>   [ \t\f\n\r]+ )
  | (?P<binary>  0x(?:[0-9A-F]{{2}})+ )
  | (?P<float>   [0-9]+\.[0-9]+(?:E[+-]?[0-9]+)? )
  | (?P<integer> [0-9]+ )
  | (?P<string>  '(?:[^']|'')*' | "(?:[^"]|"")*" )
  | (?P<section> [a-zA-Z][a-zA-Z_-]*\.{_NAME} )
  | (?P<quoted>  \[(?:[^\[\]]|\[\[|\]\])*\] )
  | (?P<name>    {_NAME} )
  | (?P<sign>    <> | != | >= | <= | [=<>+\-*/%(),] )
    """,
    re.VERBOSE,
)
_WORDS: Final = {"AND", "OR", "NOT", "LIKE", "IN", "IS", "NULL", "ESCAPE", "TRUE", "FALSE", "UTC"}
_RESERVED: Final = {
    *(word.lower() for word in _WORDS),
    *("exists", "nan", "inf", "lower", "upper", "left", "right", "substring", "date"),
}
_APPLICATION: Final = ("application_properties", "a")

_OR, _AND, _NOT, _COMPARED, _SUM, _PRODUCT = range(1, 7)
_STRENGTH: Final = {
    "OR": _OR,
    "AND": _AND,
    **dict.fromkeys(("=", "<>", "!=", "<", ">", "<=", ">=", "LIKE", "IN", "IS", "NOT"), _COMPARED),
    **dict.fromkeys("+-", _SUM),
    **dict.fromkeys("*/%", _PRODUCT),
}
"""Operator -> how strongly it binds; NOT stands there for NOT LIKE and NOT IN."""


def read_expression(text: str, milliseconds: Callable[[], int]) -> Expression:
    """The function of an expression; `milliseconds` tells the time of UTC().

    Raises:
        IllFormed: RabbitMQ cannot read it.
        OverflowError: it has a number beyond the floats, at which RabbitMQ crashes.
    """
    if len(text) > _LONGEST or any("\ud800" <= each <= "\udfff" for each in text):
        raise IllFormed(f"an expression of {len(text)} characters, or not in UTF-8")
    tokens = _tokens(text)
    if len(tokens) > _MOST_TOKENS:
        raise IllFormed(f"an expression of {len(tokens)} tokens")
    parser = _Parser(tokens, milliseconds)
    expression = parser.expression(_OR)
    parser.expect("end")
    return expression


# --- tokens -------------------------------------------------------------------------------------------------


def _tokens(text: str) -> list[tuple[str, Any]]:
    """Kind and value of each token; the kind of words and signs is what they say."""
    found: list[tuple[str, Any]] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise IllFormed(f"{text[at]!r} begins no token")
        at = token.end()
        kind, said = token.lastgroup or "", token[0]
        if (kind == "name" and said in _WORDS) or kind == "sign":
            found.append((said, said))
        elif kind != "space":
            found.append((_KINDS.get(kind, "literal"), _READ[kind](said)))
    return found


def _float(said: str) -> Expression:
    number = float(said)
    if not isfinite(number):
        raise OverflowError(f"{said} is no float")
    return lambda properties: number


def _constant(value: Any) -> Expression:
    return lambda properties: value


def _name(said: str) -> Expression:
    if said.lower() in _RESERVED:
        raise IllFormed(f"{said} is reserved")
    return partial(_application, said)


def _quoted(said: str) -> Expression:
    name = said[1:-1]
    if any(ord(each) < 32 or ord(each) == 127 for each in name):
        raise IllFormed("an identifier has a control character")
    return partial(_application, name.replace("[[", "[").replace("]]", "]"))


def _in_section(said: str) -> Expression:
    section, _, name = said.partition(".")
    if section in _APPLICATION:
        return partial(_application, name)
    if section in ("properties", "p") and name in FIELDS:
        return lambda properties: field_of(properties, name)
    if section in ("header", "h") and name == "priority":
        return lambda properties: _DEFAULT_PRIORITY if properties.priority is None else properties.priority
    raise IllFormed(f"there is no field {said}")


def _application(name: str, properties: SectionProperties) -> Any:
    try:
        return application_property(properties, name)
    except KeyError:
        return None


_READ: Final[dict[str, Callable[[str], Any]]] = {
    "binary": lambda said: _constant(bytes.fromhex(said[2:])),
    "float": _float,
    "integer": lambda said: _constant(int(said)),
    "string": lambda said: said[1:-1].replace(said[0] * 2, said[0]),
    "section": _in_section,
    "quoted": _quoted,
    "name": _name,
}
"""Kind of a token -> its function, or the text of a string."""
_KINDS: Final = {**dict.fromkeys(("section", "quoted", "name"), "identifier"), "string": "string"}
"""Kind of a token -> what it is for the grammar; the others are literals."""


# --- grammar ------------------------------------------------------------------------------------------------


class _Parser:
    """Reads tokens from the left. Its methods raise IllFormed."""

    def __init__(self, tokens: list[tuple[str, Any]], milliseconds: Callable[[], int]) -> None:
        self._tokens = [*tokens, ("end", None)]
        self._at = 0
        self._milliseconds = milliseconds

    def _accept(self, kind: str) -> bool:
        """Whether the next token is of this kind; then it is taken."""
        found = self._tokens[self._at][0] == kind
        self._at += found
        return found

    def expect(self, kind: str) -> Any:
        """The value of the next token, which must be of this kind."""
        if not self._accept(kind):
            raise IllFormed(f"{self._tokens[self._at]} instead of {kind}")
        return self._tokens[self._at - 1][1]

    def expression(self, least: int) -> Expression:
        """An expression whose operators bind at least as strongly as this."""
        start = self._at
        # What a comparison or NOT yields can only be the operand of AND and OR.
        most = _PRODUCT
        if least <= _NOT and self._accept("NOT"):
            left, most = _negated(self.expression(_NOT)), _AND
        else:
            left = self._operand()
        while True:
            sign = self._tokens[self._at][0]
            strength = _STRENGTH.get(sign, 0)
            if not least <= strength <= most:
                return left
            if sign == "IS" and (self._at != start + 1 or self._tokens[start][0] != "identifier"):
                raise IllFormed("only an identifier is NULL")
            self._at += 1
            if strength == _COMPARED:
                left, most = self._comparison(left, sign), _AND
            else:
                left = partial(_OPERATIONS[sign], left, self.expression(strength + 1))

    def _comparison(self, left: Expression, sign: str) -> Expression:
        if sign == "IS":
            negated = self._accept("NOT")
            self.expect("NULL")
            result: Expression = lambda properties: left(properties) is None  # noqa: E731
        elif sign in ("NOT", "IN", "LIKE"):
            negated = sign == "NOT"
            if self._accept("IN") if negated else sign == "IN":
                result = partial(_in, left, self._list())
            elif not negated or self.expect("LIKE"):
                pattern = self.expect("string")
                escape = self.expect("string") if self._accept("ESCAPE") else None
                result = partial(_like, left, like(pattern, escape))
        else:
            return partial(_compared, sign, left, self.expression(_SUM))
        return _negated(result) if negated else result

    def _list(self) -> list[Expression]:
        self.expect("(")
        found = [self.expression(_SUM)]
        while self._accept(","):
            found.append(self.expression(_SUM))
        self.expect(")")
        return found

    def _operand(self) -> Expression:
        """A literal, an identifier or parentheses, with or without a sign."""
        kind, value = self._tokens[self._at]
        self._at += 1
        if kind in ("+", "-"):
            if self._tokens[self._at][0] in ("+", "-"):
                raise IllFormed("two signs")
            return partial(_signed, kind, self._operand())
        if kind == "(":
            inner = self.expression(_OR)
            self.expect(")")
            return inner
        if kind == "UTC":
            self.expect("(")
            self.expect(")")
            return lambda properties: self._milliseconds()
        if kind in ("TRUE", "FALSE"):
            return _constant(kind == "TRUE")
        if kind == "string":
            return _constant(encoded(value))
        if kind not in ("identifier", "literal"):
            raise IllFormed(f"{kind} instead of an operand")
        operand: Expression = value
        return operand


# --- evaluation ---------------------------------------------------------------------------------------------


def _boolean(value: Any) -> bool | None:
    """What is no boolean is unknown."""
    return value if isinstance(value, bool) else None


def _negated(of: Expression) -> Expression:
    def evaluate(properties: SectionProperties) -> bool | None:
        value = _boolean(of(properties))
        return None if value is None else not value

    return evaluate


def _junction(
    decisive: bool, left: Expression, right: Expression, properties: SectionProperties
) -> bool | None:
    """AND, which False decides, and OR, which True decides."""
    one = _boolean(left(properties))
    if one is decisive:
        return decisive
    other = _boolean(right(properties))
    return other if one is not None or other is decisive else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _arithmetic(
    operate: Callable[[Any, Any], Any], left: Expression, right: Expression, properties: SectionProperties
) -> Any:
    """The result for two numbers, otherwise unknown; OverflowError beyond the floats."""
    one, other = left(properties), right(properties)
    if not (_is_number(one) and _is_number(other)):
        return None
    result = operate(one, other)
    if isinstance(result, float) and not isfinite(result):
        raise OverflowError("a number beyond the floats")
    return result


def _remainder(one: Any, other: Any) -> int | None:
    """Of two integers, with the sign of the first."""
    if not (isinstance(one, int) and isinstance(other, int) and other):
        return None
    left = abs(one) % abs(other)
    return -left if one < 0 else left


_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "OR": partial(_junction, True),
    "AND": partial(_junction, False),
    "+": partial(_arithmetic, lambda one, other: one + other),
    "-": partial(_arithmetic, lambda one, other: one - other),
    "*": partial(_arithmetic, lambda one, other: one * other),
    "/": partial(_arithmetic, lambda one, other: float(one) / float(other) if other else None),
    "%": partial(_arithmetic, _remainder),
}
_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {"<": lt, ">": gt, "<=": le, ">=": ge}


def _signed(sign: str, of: Expression, properties: SectionProperties) -> Any:
    value = of(properties)
    if not _is_number(value):
        return None
    return -value if sign == "-" else value


def _compared(sign: str, left: Expression, right: Expression, properties: SectionProperties) -> bool | None:
    """Values of different types are unequal, and none is less than the other."""
    one, other = left(properties), right(properties)
    if one is None or other is None:
        return None
    if sign not in _ORDERS:
        return equal(one, other) == (sign == "=")
    alike = (_is_number(one) and _is_number(other)) or (isinstance(one, bytes) and isinstance(other, bytes))
    return alike and _ORDERS[sign](one, other)


def _in(left: Expression, members: list[Expression], properties: SectionProperties) -> bool | None:
    value = left(properties)
    return None if value is None else any(equal(each(properties), value) for each in members)


def _like(
    left: Expression, matches: Callable[[bytes], bool | None], properties: SectionProperties
) -> bool | None:
    value = left(properties)
    return matches(value) if isinstance(value, bytes) else None
