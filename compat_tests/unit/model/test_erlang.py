"""Terms as Erlang prints them: `io_lib:format("~tp", [Term])` of Erlang/OTP 25, 27 and 29, measured."""

from __future__ import annotations

import pytest

from fakeamqp.model.erlang import Atom, Plain, octets_term, pretty, term

MARK = Atom("invalid_frame_end_marker")
LARGE = Atom("frame_too_large")

BINARIES: list[tuple[bytes, str]] = [
    (b"", "<<>>"),
    (b"abc", '<<"abc">>'),
    (b'q"\\\n\t\x1b', '<<"q\\"\\\\\\n\\t\\e">>'),
    ("zaż".encode(), '<<"zaż"/utf8>>'),
    ("😀".encode(), '<<"😀"/utf8>>'),
    (b"\xff\xfe", '<<"ÿþ">>'),
    (b"a\xc5", '<<"aÅ">>'),
    (b"\x7f", "<<127>>"),
    (b"\xc2\x80", "<<194,128>>"),
    (b"\xef\xbf\xbf", "<<239,191,191>>"),
    (b"a\0", "<<97,0>>"),
]


def test_special_characters_of_strings_are_escaped() -> None:
    assert term('a\\b"c\nd') == r"""<<"a\\b\"c\nd">>"""


def _lines(indent: int, *lines: str) -> str:
    return ("\n" + " " * indent).join(lines)


BROKEN: list[tuple[int, Plain | tuple[Plain, ...], str]] = [
    (23, bytes(16), "<<0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0>>"),
    (
        28,
        bytes([1, *[200] * 15]),
        _lines(30, "<<1,200,200,200,200,200,200,200,200,200,200,200,", "200,200,200,200>>"),
    ),
    (70, b"\1\2\3\4\5", _lines(72, "<<1,2,3,4,", "5>>")),
    (0, b"\7" * 40, _lines(2, "<<" + "7," * 38, "7,7>>")),
    (50, (MARK, 0), "{invalid_frame_end_marker,0}"),
    (51, (MARK, 0), _lines(52, "{invalid_frame_end_marker,", "0}")),
    (50, (MARK, 255), _lines(51, "{invalid_frame_end_marker,", "255}")),
    (40, (LARGE, 4294967295, 131064), "{frame_too_large,4294967295,131064}"),
    (50, (LARGE, 4294967295, 131064), _lines(51, "{frame_too_large,", "4294967295,131064}")),
    (30, (Atom("value_too_large"), 10**40), _lines(34, "{value_too_large,", f"{10**40}}}")),
    (19, (Atom("leftover_string"), "x" * 60), _lines(37, '{leftover_string,"' + "x" * 60 + '"}')),
    (22, (Atom("leftover_string"), "x" * 60), _lines(26, "{leftover_string,", '"' + "x" * 60 + '"}')),
    (5, (Atom("a"), b"\1" * 30, 2), "{a,<<" + "1," * 29 + "1>>,2}"),
    (
        60,
        (Atom("ok"), b"\1" * 12, 2),
        "{ok,\n" + " " * 61 + _lines(63, "<<1,1,1,1,1,1,1,1,", "1,1,1,1>>,\n") + " " * 61 + "2}",
    ),
]


@pytest.mark.parametrize(("octets", "shown"), BINARIES)
def test_binary_is_printed_like_erlang_as_text_or_numbers(octets: bytes, shown: str) -> None:
    assert pretty(octets) == shown


@pytest.mark.parametrize(("column", "value", "shown"), BROKEN)
def test_long_terms_are_broken_into_lines_like_erlang(
    column: int, value: Plain | tuple[Plain, ...], shown: str
) -> None:
    assert pretty(value, "x" * column) == shown
    assert pretty(value, "before\n" + "x" * column) == shown


def test_octets_term_is_always_numbers_in_one_line() -> None:
    assert octets_term(b"abc" * 40) == "<<" + ",".join(["97,98,99"] * 40) + ">>"
