"""Reads patterns, in PCRE's syntax and with its texts of errors (RabbitMQ: measured), without recursion.

Recursion, subroutine calls, branch resets, callouts, verbs and Unicode properties are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, NoReturn

from fakeamqp.model.patterns import InvalidPattern, matching
from fakeamqp.model.patterns.matching import Operation, Program, Repeats, Way

_DEEPEST = 250
_LARGEST_COUNT = 65_535


# A set is a number with a bit for each of its characters. Classes are those of Latin-1 (RabbitMQ: measured).
def _bits(characters: str) -> int:
    return sum(1 << ord(each) for each in {*characters})


def _span(low: int, high: int) -> int:
    return (1 << high + 1) - (1 << low)


_ALL = _span(0, 255)
_DIGITS = _span(48, 57)
_UPPER = _span(65, 90) | _span(0xC0, 0xDE) & ~(1 << 0xD7)
_WITH_UPPER = _span(97, 122) | _span(0xE0, 0xFE) & ~(1 << 0xF7)
_LOWER = _WITH_UPPER | _bits("\xaa\xb5\xba\xdf\xff")
_WORD = _UPPER | _LOWER | _DIGITS | _bits("_")
_SPACE = _bits("\t\n\v\f\r ")
_GRAPH = _span(33, 126) | _span(160, 255)
_NEWLINE = _bits("\n")
_POSIX = {
    "alpha": _UPPER | _LOWER,
    "lower": _LOWER,
    "upper": _UPPER,
    "alnum": _UPPER | _LOWER | _DIGITS,
    "ascii": _span(0, 127),
    "blank": _bits("\t "),
    "cntrl": _span(0, 31) | _span(127, 159),
    "digit": _DIGITS,
    "graph": _GRAPH,
    "print": _GRAPH | _bits(" "),
    "punct": _GRAPH & ~(_UPPER | _LOWER | _DIGITS),
    "space": _SPACE,
    "word": _WORD,
    "xdigit": _bits("0123456789abcdefABCDEF"),
}
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE, "h": _bits("\t \xa0"), "v": _bits("\n\v\f\r\x85")}
_CLASSES |= {letter.upper(): _ALL & ~bits for letter, bits in _CLASSES.items()}
_CONTROLS = {"a": 7, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9}
_WORD_CHARACTERS = frozenset(chr(each) for each in range(256) if _WORD >> each & 1)

_QUANTIFIER = re.compile(r"(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})([+?]?)", re.ASCII)
_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_FLAGS = re.compile(r"([imsxU]*)(?:-([imsxU]*))?([:)])")
_NAMED = re.compile(r"\(\?(?:P?<(?![=!])([^>)]*)(>?)|'([^')]*)('?))")
_NAME = re.compile(r"[A-Za-z_]\w{0,31}", re.ASCII)
_REFERENCE = re.compile(r"\(\?P=([^)]*)\)|\\k(?:\{([^}]*)\}|<([^>]*)>|'([^']*)')|\\g(?:\{([^}]*)\}|(-?\d+))")
_CONDITION = re.compile(r"\(\?\((?:(\d+)|<(\w+)>|'(\w+)'|([A-Za-z_]\w*))\)", re.ASCII)
_POSIX_CLASS = re.compile(r"\[([:.=])([^\]\\]{0,32}?)\1\]")  # No name is longer.
_NUMBER = re.compile(
    r"x\{([^}]{0,32})\}|x([0-9a-fA-F]{0,2})|o\{([^}]{0,32})\}|(0[0-7]{0,2})|c(.?)", re.DOTALL
)
_UNSUPPORTED = re.compile(
    r"\(\?(?:[R&|C\d]|[-+]\d|P>|[imsxU]*[JX]|\((?:R\d*\)|R&|DEFINE\)|\?))|\(\*[A-Z]|\\[XpPC]|\\g[<']"
)
_KEEPS_GROUPS = re.compile(r"\\[1-9gk]|\(\?P=|\(\?\(")


class _Part(NamedTuple):
    """A part of a pattern."""

    operations: list[Operation]
    least: int = 0
    """The fewest characters that it takes."""
    most: float = 0
    first: int = 0
    """The characters with which it can begin, if it takes any."""
    anchored: bool = False
    """Whether it matches at the start of the text only."""
    depth: int = 0
    """The depth of nested repetitions."""
    repeatable: bool = True


@dataclass
class _Group:
    """An open group."""

    kind: str
    """Its beginning, such as "(?:"."""
    flags: frozenset[str]
    """The flags that apply again after the group."""
    number: int | str = 0
    """The number of a capturing group, or the number or name of the group that a condition refers to."""
    ways: list[list[_Part]] = field(default_factory=lambda: [[]])


def parsed(pattern: str) -> Program:
    """Compile a pattern, given as `octets`, or raise InvalidPattern."""
    return _Parser(pattern).program()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0
        self._flags: frozenset[str] = frozenset()
        self._open = [_Group("", self._flags)]
        self._groups = 0
        self._names: dict[str, int] = {}
        self._references: list[tuple[int | str, int]] = []
        """The groups that are referred to, and where."""
        self._keeps_groups = _KEEPS_GROUPS.search(pattern) is not None
        self._sets: dict[int, str] = {}
        self._single: dict[int, Operation] = {}

    def program(self) -> Program:
        """Read the pattern."""
        pattern = self._pattern
        while self._place < len(pattern):
            self._next(pattern[self._place])
        if len(self._open) > 1:
            self._refuse("missing )")
        whole = self._alternatives(self._open[0].ways)
        operations = whole.operations
        if operations and operations[-1][0] == matching.MANY:
            operations[-1] = (matching.JUMP, 1, None)  # The match may end before it.
        slots: dict[int, int] = {}
        for reference, place in self._references:
            number = self._names.get(reference, 0) if isinstance(reference, str) else reference
            if not 0 < number <= self._groups:
                self._refuse("reference to non-existent subpattern", place)
            slots.setdefault(number, len(slots))
        if self._keeps_groups:
            operations = [self._with_slot(each, slots) for each in operations]
        return Program(
            [*operations, (matching.END, None, None)],
            len(slots),
            self._characters(whole.first) if whole.least else None,
            anchored=whole.anchored,
            depth=whole.depth,
        )

    def _with_slot(self, operation: Operation, slots: dict[int, int]) -> Operation:
        """An operation with the slot of its group in place of the number or the name."""
        code, group, second = operation
        if code not in (matching.OPEN, matching.CLOSE, matching.SAME, matching.IF):
            return operation
        slot = slots.get(self._names[group] if isinstance(group, str) else group)
        return (matching.JUMP, 1, None) if slot is None else (code, slot, second)

    def _refuse(self, problem: str, place: int | None = None) -> NoReturn:
        raise InvalidPattern(problem, self._place if place is None else place)

    def _add(self, part: _Part) -> None:
        self._open[-1].ways[-1].append(part)

    # --- the next part ------------------------------------------------------------------------------

    def _next(self, character: str) -> None:
        quantifier = _QUANTIFIER.match(self._pattern, self._place) if character in "*+?{" else None
        if quantifier is not None:
            self._repeat(quantifier)
        elif character == "(":
            self._opened()
        elif character == ")":
            self._closed()
        elif character == "\\":
            self._escaped()
        elif character == "[":
            self._add(self._set(self._class()))
        elif "x" in self._flags and character in "\t\n\v\f\r #":
            end = self._pattern.find("\n", self._place) if character == "#" else self._place
            self._place = len(self._pattern) if end < 0 else end + 1
        else:
            self._place += 1
            if character == "|":
                self._open[-1].ways.append([])
            elif character == ".":
                self._add(self._set(_ALL if "s" in self._flags else _ALL & ~_NEWLINE))
            elif character in "^$":
                whole = _at_start if character == "^" else _at_end
                self._add(_check(_LINE_CHECKS[character] if "m" in self._flags else whole))
            else:
                self._add(self._set(self._folded(1 << ord(character))))

    def _characters(self, bits: int) -> str:
        found = self._sets.get(bits)
        if found is None:
            found = self._sets[bits] = "".join([chr(each) for each in range(256) if bits >> each & 1])
        return found

    def _set(self, bits: int) -> _Part:
        operation = self._single.get(bits)
        if operation is None:
            operation = self._single[bits] = (matching.SET, self._characters(bits), None)
        return _Part([operation], 1, 1, bits)

    def _folded(self, bits: int) -> int:
        if "i" not in self._flags:
            return bits
        return bits | (bits & _UPPER) << 32 | (bits & _WITH_UPPER) >> 32

    # --- repetitions --------------------------------------------------------------------------------

    def _repeat(self, quantifier: re.Match[str]) -> None:
        sign, low_text, comma, high_text, manner = quantifier.groups()
        parts = self._open[-1].ways[-1]
        self._place = quantifier.end()
        if not parts or not parts[-1].repeatable:
            self._refuse("nothing to repeat", quantifier.end() - len(manner) - 1)
        low, high = _SIGNS.get(sign, (0, None))
        if sign is None:
            # More than five digits are too many; a long number would take long to read.
            low = int(low_text[:6])
            high = int(high_text[:6]) if high_text else None if comma else low
            if max(low, high or 0) > _LARGEST_COUNT:
                self._refuse("number too big in {} quantifier", quantifier.end() - 1)
            if high is not None and high < low:
                self._refuse("numbers out of order in {} quantifier", quantifier.end() - 1)
        part = self._repeated(parts[-1], low, high, lazy=(manner == "?") is not ("U" in self._flags))
        if manner == "+":
            part = part._replace(operations=_atomic(part.operations))
        parts[-1] = part._replace(repeatable=False)

    def _repeated(self, part: _Part, low: int, high: int | None, *, lazy: bool) -> _Part:
        operations, least, most, first, anchored, depth, _ = part
        if high == 0:
            return _Part([])
        if (low, high) == (1, 1):
            return part
        if (low, high) == (0, 1):
            ways = [Way(1, self._characters(first) if least else None), Way(len(operations) + 1, None)]
            choice = (matching.WAYS, ways[::-1] if lazy else ways, None)
            return _Part([choice, *operations], 0, most, first, False, depth)
        total = inf if high is None else high * most
        if high is None and low < 2 and len(operations) == 1 and operations[0][0] == matching.SET:
            many = (matching.MANY, operations[0][1], lazy)
            return _Part([*operations * low, many], low, inf, first)
        length = len(operations)
        return _Part(
            [
                (matching.ENTER, None, None),
                (matching.TURN, Repeats(low, high, lazy, not least), length + 2),
                *operations,
                (matching.JUMP, -length - 1, None),
            ],
            low * least,
            total if most else 0,
            first,
            anchored and low > 0,
            depth + 1,
        )

    # --- groups -------------------------------------------------------------------------------------

    def _opened(self) -> None:
        pattern, place = self._pattern, self._place
        if len(self._open) > _DEEPEST:
            self._refuse("regular expression is too complicated")
        self._check_supported()
        if not pattern.startswith("(?", place):
            self._capture("")
            self._place += 1
            return
        if pattern.startswith("(?#", place):
            end = pattern.find(")", place)
            if end < 0:
                self._refuse("missing ) after comment", len(pattern))
            self._place = end + 1
            return
        for kind in ("(?:", "(?>", "(?=", "(?!", "(?<=", "(?<!"):
            if pattern.startswith(kind, place):
                self._open.append(_Group(kind, self._flags))
                self._place += len(kind)
                return
        named = _NAMED.match(pattern, place)
        if named is not None:
            self._place = named.end()
            if not (named[2] or named[4]):
                self._refuse("syntax error in subpattern name (missing terminator)")
            self._capture(named[1] or named[3] or "", named=True)
            return
        condition = _CONDITION.match(pattern, place)
        if condition is not None:
            self._place = condition.end()
            wanted = int(condition[1][:6]) if condition[1] else condition[2] or condition[3] or condition[4]
            self._references.append((wanted, self._place - 1))
            self._open.append(_Group("(?(", self._flags, wanted))
            return
        if pattern.startswith("(?P=", place):
            self._refer()
            return
        self._set_flags()

    def _capture(self, name: str, *, named: bool = False) -> None:
        self._groups += 1
        if named:
            if _NAME.fullmatch(name) is None:
                self._refuse("a group name is letters, digits and _, at most 32, and no digit comes first")
            if name in self._names:
                self._refuse("two named subpatterns have the same name", self._place - 1)
            self._names[name] = self._groups
        self._open.append(_Group("(", self._flags, self._groups))

    def _set_flags(self) -> None:
        found = _FLAGS.match(self._pattern, self._place + 2)
        if found is None:
            self._refuse("unrecognized character after (? or (?-", self._place + 2)
        on, off, behind = found.groups(default="")
        self._place = found.end()
        if behind == ":":
            self._open.append(_Group("(?:", self._flags))
        else:
            self._add(_Part([], repeatable=False))
        self._flags = self._flags.union(on).difference(off)

    def _check_supported(self) -> None:
        found = _UNSUPPORTED.match(self._pattern, self._place)
        if found is not None:
            self._refuse(f"{found[0]!r} is not supported: of PCRE's syntax, it is left to RabbitMQ")

    def _closed(self) -> None:
        if len(self._open) == 1:
            self._refuse("unmatched parentheses")
        group = self._open.pop()
        self._flags = group.flags
        kind = group.kind
        if kind == "(?(":
            part = self._conditional(group)
        elif kind in ("(?<=", "(?<!"):
            part = self._alternatives([self._behind(parts) for parts in group.ways])
        else:
            part = self._alternatives(group.ways)
        if kind == "(?>":
            part = part._replace(operations=_atomic(part.operations))
        elif kind[-1:] in ("=", "!"):
            look = (matching.LOOK, kind[-1] == "!", len(part.operations) + 2)
            part = _Part([look, *part.operations, (matching.END, None, None)], depth=part.depth)
        elif kind == "(" and self._keeps_groups:
            number = group.number
            begin, end = (matching.OPEN, number, None), (matching.CLOSE, number, None)
            part = part._replace(operations=[begin, *part.operations, end])
        self._add(part)
        self._place += 1

    def _behind(self, parts: list[_Part]) -> list[_Part]:
        whole = _in_order(parts)
        if whole.least != whole.most:
            self._refuse("lookbehind assertion is not fixed length")
        return [_Part([(matching.BACK, whole.least, None), *whole.operations])]

    def _conditional(self, group: _Group) -> _Part:
        if len(group.ways) > 2:
            self._refuse("conditional group contains more than two branches")
        yes = _in_order(group.ways[0])
        no = _in_order(group.ways[1] if len(group.ways) > 1 else [])
        return _Part(
            [
                (matching.IF, group.number, len(yes.operations) + 2),
                *yes.operations,
                (matching.JUMP, len(no.operations) + 1, None),
                *no.operations,
            ],
            min(yes.least, no.least),
            max(yes.most, no.most),
            yes.first | no.first,
            depth=max(yes.depth, no.depth),
        )

    def _alternatives(self, ways: Sequence[list[_Part]]) -> _Part:
        if len(ways) == 1:
            return _in_order(ways[0])
        parts = [_in_order(way) for way in ways]
        # With the first operation; the last has no jump.
        end = sum(len(each.operations) + 1 for each in parts)
        starts: list[Way] = []
        operations: list[Operation] = [(matching.WAYS, starts, None)]
        for part in parts:
            if starts:
                operations.append((matching.JUMP, end - len(operations), None))
            starts.append(Way(len(operations), self._characters(part.first) if part.least else None))
            operations += part.operations
        first = 0
        for part in parts:
            first |= part.first
        return _Part(
            operations,
            min(each.least for each in parts),
            max(each.most for each in parts),
            first,
            all(each.anchored for each in parts),
            max(each.depth for each in parts),
        )

    # --- escapes ------------------------------------------------------------------------------------

    def _escaped(self) -> None:
        pattern, place = self._pattern, self._place
        if pattern.startswith(("\\Q", "\\E"), place):
            end = pattern.find("\\E", place)
            end = len(pattern) if end < 0 else end
            for character in pattern[place + 2 : end]:
                self._add(self._set(self._folded(1 << ord(character))))
            self._place = end + 2
            return
        letter = pattern[place + 1 : place + 2]
        if not letter:
            self._refuse("\\ at end of pattern", len(pattern))
        part = None
        if letter in _CHECKS:
            part = _check(_CHECKS[letter])
        elif letter in _CLASSES:
            part = self._set(_CLASSES[letter])
        elif letter == "K":
            part = _Part([], repeatable=False)
        elif letter == "N" and (
            pattern[place + 2 : place + 3] != "{" or _QUANTIFIER.match(pattern, place + 2)
        ):
            part = self._set(_ALL & ~_NEWLINE)
        elif letter == "R":
            newline = [self._set(_bits("\r")), self._set(_NEWLINE)]
            part = self._alternatives([newline, [self._set(_CLASSES["v"])]])
            part = part._replace(operations=_atomic(part.operations))
        if part is not None:
            self._place += 2
            self._add(part)
        elif letter in "gk" and not pattern.startswith(("\\g<", "\\g'"), place):
            self._refer()
        elif letter in "123456789" and not self._is_octal():
            digits = re.compile("[0-9]+").match(pattern, place + 1)
            assert digits is not None
            self._place = digits.end()
            self._refer_to(int(digits[0][:6]), self._place)
        else:
            self._check_supported()
            self._add(self._set(self._folded(1 << self._character())))

    def _is_octal(self) -> bool:
        """Whether the digits are an octal character, not the number of a group."""
        digits = re.compile("[0-9]{1,6}").match(self._pattern, self._place + 1)
        return digits is not None and int(digits[0]) > max(7, self._groups)

    def _refer(self) -> None:
        """Read a back reference by name, or in braces."""
        found = _REFERENCE.match(self._pattern, self._place)
        if found is None:
            self._refuse(
                "\\k is not followed by a braced, angle-bracketed, or quoted name"
                if self._pattern[self._place + 1] == "k"
                else "a numbered reference must not be zero"
            )
        self._place = found.end()
        name = next(each for each in found.groups() if each is not None)
        number = re.fullmatch("-?[0-9]{1,6}", name) if found[0].startswith("\\g") else None
        if number is None:
            self._refer_to(name)
        else:
            self._refer_to(int(name) if int(name) >= 0 else self._groups + 1 + int(name))

    def _refer_to(self, group: int | str, place: int | None = None) -> None:
        self._references.append((group, self._place - 1 if place is None else place))
        self._add(_Part([(matching.SAME, group, "i" in self._flags)], 0, inf, _ALL))

    def _character(self) -> int:
        """Read the escape of one character, here and in sets."""
        pattern, place = self._pattern, self._place
        letter = pattern[place + 1 : place + 2]
        self._place += 2
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter in "LlNUu":
            self._refuse("PCRE does not support \\L, \\l, \\N{name}, \\U, or \\u", place + 1)
        if letter in "1234567":
            digits = re.compile("[0-7]{1,3}").match(pattern, place + 1)
            assert digits is not None
            self._place = digits.end()
            return self._in_range(digits[0], 8)
        number = _NUMBER.match(pattern, place + 1)
        if number is None:
            return ord(letter)
        self._place = number.end()
        braced, hexadecimal, octal, zero, control = number.groups()
        if control is not None:
            if not control or not control.isascii():
                self._refuse("\\c must be followed by an ASCII character")
            return ord(control.upper()) ^ 64
        if octal is not None or zero is not None:
            return self._in_range(octal or zero, 8)
        return self._in_range(braced if braced is not None else hexadecimal or "0", 16)

    def _in_range(self, digits: str, base: int) -> int:
        known = "0123456789abcdefABCDEF" if base == 16 else "01234567"
        if not digits or digits.strip(known):
            kind = "hex" if base == 16 else "octal"
            self._refuse(
                f"non-{kind} character in \\{'x' if base == 16 else 'o'}{{}} (closing brace missing?)"
            )
        value = int(digits.lstrip("0")[:6] or "0", base)
        if value > 255:
            self._refuse("character value in \\x{} or \\o{} is too large")
        return value

    # --- sets ---------------------------------------------------------------------------------------

    def _class(self) -> int:
        """Read a set in brackets."""
        pattern = self._pattern
        negated = pattern.startswith("[^", self._place)
        self._place += 1 + negated
        bits = 0
        begin = self._place
        low = -1
        """The character before, with which a range can begin."""
        quoted = False
        while True:
            if self._place >= len(pattern):
                self._refuse("missing terminating ] for character class", len(pattern))
            if pattern.startswith("\\E" if quoted else ("\\Q", "\\E"), self._place):
                quoted = not quoted and pattern[self._place + 1] == "Q"
                if begin == self._place:
                    begin += 2
                self._place += 2
                continue
            if not quoted and pattern[self._place] == "]" and self._place > begin:
                self._place += 1
                break
            if (
                low >= 0
                and not quoted
                and pattern[self._place] == "-"
                and not pattern.startswith("-]", self._place)
                and self._place + 1 < len(pattern)
            ):
                self._place += 1
                item, high = self._item(quoted)
                if high < 0:
                    self._refuse("invalid range in character class", self._place - 1)
                if high < low:
                    self._refuse("range out of order in character class", self._place - 1)
                bits |= self._folded(_span(low, high))
                low = -1
                continue
            item, low = self._item(quoted)
            bits |= item
        return _ALL & ~bits if negated else bits

    def _item(self, quoted: bool) -> tuple[int, int]:
        """One item of a set: its characters, and the character if it is a single one, else -1."""
        pattern, place = self._pattern, self._place
        character = pattern[place]
        if not quoted:
            posix = _POSIX_CLASS.match(pattern, place)
            if posix is not None:
                return self._posix(posix), -1
            if character == "\\":
                letter = pattern[place + 1 : place + 2]
                if letter in _CLASSES:
                    self._place += 2
                    return _CLASSES[letter], -1
                if letter == "N":
                    self._refuse("\\N is not supported in a class", place + 2)
                if letter in "pP" and letter:
                    self._check_supported()
                value = 8 if letter == "b" else self._character()
                self._place = max(self._place, place + 2)
                return self._folded(1 << value), value
        self._place += 1
        return self._folded(1 << ord(character)), ord(character)

    def _posix(self, found: re.Match[str]) -> int:
        sign, name = found.groups()
        if sign != ":":
            self._refuse("POSIX collating elements are not supported")
        bits = _POSIX.get(name.removeprefix("^"))
        if bits is None:
            self._refuse("unknown POSIX class name", found.start() + 2)
        self._place = found.end()
        if "i" in self._flags and name in ("lower", "upper", "^lower", "^upper"):
            bits = _POSIX["alpha"]
        return _ALL & ~bits if name.startswith("^") else bits


def _in_order(parts: list[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]._replace(repeatable=True)
    operations: list[Operation] = []
    least, most, first, anchored, depth = 0, 0.0, 0, False, 0
    for part in parts:
        operations += part.operations
        if not least:
            first |= part.first
        if not most:
            anchored = anchored or part.anchored
        least += part.least
        most += part.most
        depth = max(depth, part.depth)
    return _Part(operations, least, most, first, anchored, depth)


def _atomic(operations: list[Operation]) -> list[Operation]:
    return [(matching.ATOM, None, len(operations) + 2), *operations, (matching.END, None, None)]


# --- places ------------------------------------------------------------------------------------------


def _check(holds: Callable[[str, int], bool]) -> _Part:
    return _Part([(matching.CHECK, holds, None)], anchored=holds is _at_start, repeatable=False)


def _at_start(text: str, place: int) -> bool:
    return not place


def _at_end(text: str, place: int) -> bool:
    return place == len(text) or (place == len(text) - 1 and text[place] == "\n")


def _at_word_boundary(text: str, place: int) -> bool:
    before = place > 0 and text[place - 1] in _WORD_CHARACTERS
    return before is not (place < len(text) and text[place] in _WORD_CHARACTERS)


_CHECKS: dict[str, Callable[[str, int], bool]] = {
    "A": _at_start,
    "G": _at_start,
    "Z": _at_end,
    "z": lambda text, place: place == len(text),
    "b": _at_word_boundary,
    "B": lambda text, place: not _at_word_boundary(text, place),
}
_LINE_CHECKS: dict[str, Callable[[str, int], bool]] = {
    "^": lambda text, place: not place or (text[place - 1] == "\n" and place < len(text)),
    "$": lambda text, place: place == len(text) or text[place] == "\n",
}
