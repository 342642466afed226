"""Scenarios of SQL filters on streams: expressions, and the messages for which they are true."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from compat_tests.differential.amqp_1_0.scenarios.play import Play, each, filled, scenario
from compat_tests.differential.amqp_1_0.scenarios.property_filters import APPLICATION, VALUES
from compat_tests.differential.amqp_1_0.scenarios.tables import described, published, table
from compat_tests.scripted.amqp_1_0 import RECEIVER, message
from fakeamqp.protocols.amqp_1_0.codec.composites import Header, Properties
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Described,
    Milliseconds,
    Symbol,
    UByte,
    UInt,
    ULong,
)

SQL: Final = "amqp:sql-filter"
KEY: Final = "sql-filter"
_UUID = UUID("550e8400-e29b-41d4-a716-446655440000")


def sql(text: Any) -> dict[Any, Any]:
    """A set of filters with this expression."""
    return described(SQL, text, key=KEY)


def expressions(*texts: str) -> dict[str, dict[Any, Any]]:
    return {text: sql(text) for text in texts}


_NUMBERS = [
    message(b"none"),
    *(message(str(value).encode(), application={"n": value}) for value in (-1, 0, 1, 2, 7, 0.5, 2.0)),
    message(b"big", application={"n": (1 << 63) - 1}),
    message(b"uint", application={"n": UInt(7)}),
    message(b"text", application={"n": "2"}),
    message(b"true", application={"n": True}),
    message(b"false", application={"n": False}),
    message(b"null", application={"n": None}),
    message(b"both", application={"n": 1, "m": 2}),
]
ARITHMETIC = expressions(
    *(f"n {operator} 2" for operator in ("=", "<>", "!=", "<", ">", "<=", ">=")),
    *(f"n {operator} 2.0" for operator in ("=", "<>", "<")),
    "n = '2'",
    "n <> '2'",
    "n < '3'",
    "n = TRUE",
    "n <> TRUE",
    "n < TRUE",
    "n = n",
    "n <> n",
    "TRUE",
    "FALSE",
    "n",
    "1",
    "'TRUE'",
    "NOT n",
    "NOT n = 2",
    "n + 1 = 2",
    "n - 1 = 1",
    "n * 2 = 2",
    "n / 2 = 1",
    "n / 2 = 0.5",
    "7 / 2 = 3.5",
    "n % 2 = 1",
    "n % 2 = -1",
    "n % 2.0 = 1",
    "n % 0 = 0",
    "n / 0 = 0",
    "1 / n > 0",
    "1 / n IS NULL",
    "-n = 1",
    "+n = 1",
    "- 1 = n",
    "-(n + 1) = -2",
    "--n = 1",
    "n - -1 = 2",
    "n--1 = 2",
    "1 + n * 2 = 5",
    "(1 + n) * 2 = 6",
    "8 / 2 / 2 = 2",
    "8 - 2 - 2 = 4",
    "n + 'a' = 'a'",
    "n + TRUE = 2",
    "n + m = 3",
    "n = m OR n = 1",
    "9223372036854775807 = n",
    "9223372036854775808 > n",
    "9223372036854775807.0 = n",
    "99999999999999999999999999999999 > n",
    "n = 0.5",
    "n = .5",
    "n = 5.0E-1",
    "n = 50.0E-2",
    "n = 2.0E0",
    "n = 2.0E+0",
    "n = 2E0",
    "n = 2.0e0",
    "n = 2.",
    "n = 00002",
    "n = 1 = TRUE",
    "(n = 1) = TRUE",
    "(n = 1) <> TRUE",
    "n IS NULL",
    "n IS NOT NULL",
    "NOT n IS NULL",
    "NOT (n IS NULL)",
    "n = NULL",
    "m IS NULL",
    "z IS NULL",
    "z IS NOT NULL",
    "z = 1",
    "NOT z = 1",
    "z <> 1",
    "(n) IS NULL",
    "1 IS NULL",
    "n + 1 IS NULL",
    "n IS",
    "n IS 1",
    "n IN (1, 2)",
    "n IN (1.0, 7)",
    "n NOT IN (1, 2)",
    "NOT n IN (1, 2)",
    "n IN (m, 7)",
    "n IN (m - 1)",
    "n IN ('2', TRUE)",
    "n IN (z)",
    "z IN (1)",
    "z NOT IN (1)",
    "n IN ()",
    "n IN 1",
    "n IN (1,)",
    "n IN (n = 1)",
    "n IN ((n = 1))",
    "2 IN (n)",
    "z AND TRUE",
    "z AND FALSE",
    "NOT (z AND FALSE)",
    "NOT (z AND TRUE)",
    "NOT (FALSE AND z)",
    "z OR TRUE",
    "TRUE OR z",
    "z OR FALSE",
    "NOT (z OR FALSE)",
    "NOT z",
    "n AND TRUE",
    "NOT (n AND TRUE)",
    "n OR TRUE",
    "n = 1 OR n = 2 AND FALSE",
    "(n = 1 OR n = 2) AND FALSE",
    "NOT n = 1 AND n = 2",
    "NOT NOT n = 1",
    "NOT TRUE OR TRUE",
    "n = 1 AND NOT n = 2",
    "n = (NOT TRUE)",
    "n = NOT TRUE",
    "n NOT 1",
    "n 1",
    "n =",
    "= 1",
    "",
    " ",
    "()",
    "(n = 1",
    "n = 1)",
    "n = 1 AND",
    "n == 1",
    "n <= > 1",
    "n > 0 < 2",
    "1 = 1 = 1",
    "TRUE AND TRUE = TRUE",
)
_STRINGS = [
    message(b"none"),
    *(
        message(str(value).encode(), application={"s": value})
        for value in ("abc", "ABC", "a_c", "a%c", "aXc", "", "it's", "\xe4bc", "a!c", "a.c", "abcabc", "[x]")
    ),
    message(b"newline", application={"s": "a\nc"}),
    message(b"ends in newline", application={"s": "abc\n"}),
    message(b"only newline", application={"s": "\n"}),
    message(b"symbol", application={"s": Symbol("abc")}),
    message(b"octets", application={"s": b"abc"}),
    message(b"no utf-8", application={"s": b"a\xffc"}),
    message(b"number", application={"s": 1}),
    message(b"quote", application={"s": 'say "x"'}),
    message(b"backslash", application={"s": "a\\c"}),
]
STRINGS = expressions(
    "s = 'abc'",
    's = "abc"',
    "s <> 'abc'",
    "s > 'abc'",
    "s < 'abc'",
    "s >= 'abc'",
    "s = 'it''s'",
    's = "it\'s"',
    's = "say ""x"""',
    "s = 'say \"x\"'",
    "s = ''",
    "s = '\xe4bc'",
    "s = 0x616263",
    "s = 0x61FF63",
    "s = 0x61ff63",
    "s = 0x6162",
    "s = 0x616",
    "s = 0x",
    "s > 0x61",
    "s LIKE 'abc'",
    "s LIKE 'a%'",
    "s LIKE '%c'",
    "s LIKE '%b%'",
    "s LIKE 'a%c'",
    "s LIKE 'a_c'",
    "s LIKE '___'",
    "s LIKE '%'",
    "s LIKE '%%'",
    "s LIKE ''",
    "s LIKE '_%'",
    "s LIKE 'ab%bc'",
    "s LIKE 'a%b%c'",
    "s LIKE '%_bc'",
    "s LIKE 'a!_c' ESCAPE '!'",
    "s LIKE 'a!%c' ESCAPE '!'",
    "s LIKE 'a!!c' ESCAPE '!'",
    "s LIKE 'a!bc' ESCAPE '!'",
    "s LIKE 'abc!' ESCAPE '!'",
    "s LIKE 'a%%c' ESCAPE '%'",
    "s LIKE 'a_%c' ESCAPE '_'",
    "s LIKE 'a!_%' ESCAPE '!'",
    "s LIKE 'a\xe4_c' ESCAPE '\xe4'",
    "s LIKE 'abc' ESCAPE ''",
    "s LIKE 'abc' ESCAPE '!!'",
    "s LIKE 'a.c'",
    "s LIKE 'a._'",
    "s LIKE '[x]'",
    "s LIKE '[_]'",
    "s LIKE '_bc'",
    "s LIKE 'a\\_'",
    "s LIKE 'a\nc'",
    "s LIKE 'a\tc'",
    "s LIKE '_'",
    "s NOT LIKE 'a%'",
    "NOT s LIKE 'a%'",
    "s NOT LIKE 'a!%c' ESCAPE '!'",
    's LIKE "a%"',
    "s LIKE s",
    "s LIKE 1",
    "s LIKE 0x61",
    "'abc' LIKE 'a%'",
    "z LIKE 'a%'",
    "z NOT LIKE 'a%'",
    "s LIKE 'a%' = TRUE",
    "(s LIKE 'a%') = TRUE",
    "s + 'x' LIKE 'a%'",
    "s IN ('abc', 'aXc')",
    "s NOT IN ('abc', 'aXc')",
    "s in ('abc')",
    "s like 'a%'",
    "s IN ('abc', 1)",
    "s = 'abc",
    "s = 'a' 'b'",
    "s = 'abc' and TRUE",
    "S = 'abc'",
    "s.x = 'abc'",
    "[s] = 'abc'",
    "$s = 'abc'",
    "s = 'abc' -- comment",
    "s = 'abc';",
    "s\t=\n'abc'",
    "s='abc'",
    "\xe4 = 1",
    "LOWER(s) = 'abc'",
    "EXISTS(s)",
)
_TYPES = [
    message(b"absent"),
    *(message(name.encode(), application={"k": each}) for name, each in VALUES.items()),
]
TYPES = expressions(
    "k IS NULL",
    "k IS NOT NULL",
    "k = k",
    "k <> k",
    "k = 5",
    "k > 4",
    "k < 100",
    "k + 0 > 0",
    "k = 'one-abc'",
    "k > 'a'",
    "k LIKE 'o%'",
    "k LIKE '%'",
    "k = TRUE",
    "k <> TRUE",
    "k",
    "NOT k",
    "k = 0x550E8400E29B41D4A716446655440000",
    "k = 53",
    "k IN (1, 5, 'one-abc', TRUE)",
    "k NOT IN (1, 5, 'one-abc', TRUE)",
)
_ALL = Properties(
    message_id="id",
    user_id=b"guest",
    to="there",
    subject="title",
    reply_to="back",
    correlation_id=ULong(7),
    content_type=Symbol("text/plain"),
    content_encoding=Symbol("gzip"),
    absolute_expiry_time=Milliseconds(9_000_000_000_000),
    creation_time=Milliseconds(123),
    group_id="group",
    group_sequence=UInt(9),
    reply_to_group_id="answers",
)
_SECTIONS = [
    message(b"none"),
    message(b"all", header=Header(priority=UByte(7)), properties=_ALL, application={"subject": "mine"}),
    message(b"uuid", header=Header(priority=UByte(0)), properties=Properties(message_id=_UUID)),
    message(b"header", header=Header(durable=True), properties=Properties(creation_time=Milliseconds(0))),
    message(
        b"odd names",
        application={
            "a b": 1,
            "a]b": 2,
            "a[b": 3,
            "": 4,
            "and": 5,
            "priority": 6,
            "x-y": 7,
            "p.to": 8,
            "_u": 9,
        },
    ),
    message(
        b"future",
        properties=Properties(
            creation_time=Milliseconds(9_000_000_000_000), absolute_expiry_time=Milliseconds(1_000_000)
        ),
    ),
]
SECTIONS = expressions(
    "p.message_id = 'id'",
    "properties.message_id = 'id'",
    "p.message_id = 0x550E8400E29B41D4A716446655440000",
    "p.user_id = 'guest'",
    "p.to = 'there'",
    "p.subject = 'title'",
    "p.reply_to LIKE 'b%'",
    "p.correlation_id = 7",
    "p.content_type = 'text/plain'",
    "p.content_encoding IN ('gzip')",
    "p.absolute_expiry_time > 0",
    "p.absolute_expiry_time > UTC()",
    "p.creation_time = 123",
    "p.creation_time < UTC()",
    "p.creation_time > UTC()",
    "p.creation_time IS NULL",
    "p.creation_time = 0",
    "UTC() > 123",
    "UTC = 1",
    "UTC() IS NULL",
    "utc() > 0",
    "p.group_id = 'group'",
    "p.group_sequence + 1 = 10",
    "p.reply_to_group_id <> 'x'",
    "p.message_id IS NULL",
    "p.subject IS NOT NULL",
    "h.priority = 4",
    "header.priority = 7",
    "h.priority = 0",
    "h.priority IS NULL",
    "h.durable = TRUE",
    "h.ttl > 0",
    "p.group-id = 'group'",
    "p.nope = 1",
    "p. to = 'there'",
    "p.TO = 'there'",
    "P.to = 'there'",
    "m.x = 1",
    "subject = 'mine'",
    "a.subject = 'mine'",
    "application_properties.subject = 'mine'",
    "application-properties.subject = 'mine'",
    "a.priority = 6",
    "a.and = 5",
    "a._u = 9",
    "_u = 9",
    "[_u] = 9",
    "[a b] = 1",
    "[a]]b] = 2",
    "[a[[b] = 3",
    "[a]b] = 2",
    "[a[b] = 3",
    "[] = 4",
    "[and] = 5",
    "[x-y] = 7",
    "[p.to] = 8",
    "x-y = 7",
    "a.[a b] = 1",
    "[a\tb] = 1",
    "priority = 6",
    "date = 1",
    "left = 1",
    "nan = 1",
    "exists = 1",
    "dates = 1",
    "p.to = 'there' AND h.priority > 5 AND subject = 'mine'",
)


@each(
    arithmetic=(_NUMBERS, ARITHMETIC),
    strings=(_STRINGS, STRINGS),
    types=(_TYPES, TYPES),
    sections=(_SECTIONS, SECTIONS),
)
def sql_filters(play: Play, given: tuple[list[bytes], dict[str, dict[Any, Any]]]) -> None:
    messages, cases = given
    table(play, published(play, messages), cases)


@scenario
def sql_filters_in_force(play: Play) -> None:
    """The limits of expressions, and what else decides whether one is in force."""
    true = "n = 1"
    cases = {
        "4096 characters": sql(true + " " * (4096 - len(true))),
        "4097 characters": sql(true + " " * (4097 - len(true))),
        "4096 wide characters": sql("n = 1 OR n = '" + "\xe4" * 4081 + "'"),
        "199 tokens": sql(" AND ".join([true] * 50)),
        "200 tokens": sql("NOT " + " AND ".join([true] * 50)),
        "201 tokens": sql("NOT NOT " + " AND ".join([true] * 50)),
        "nested": sql("(" * 98 + true + ")" * 98),
        "nested beyond": sql("(" * 99 + true + ")" * 99),
        "code": {Symbol(KEY): Described(ULong(0x120), true)},
        "other name": described(SQL, true, key="x"),
        "name of the descriptor": described(SQL, true),
        "other descriptor": described("x", true, key=KEY),
        "symbol that properties exclude": {**sql(Symbol(true)), **described(APPLICATION, {"n": 2})},
        "before properties": {**sql(true), **described(APPLICATION, {"n": 2})},
        "after properties": {**described(APPLICATION, {"n": 2}), **sql(true)},
        "bad before properties": {**sql("n ="), **described(APPLICATION, {"n": 2})},
        "with stream-filter": {
            **described("rabbitmq:stream-filter", "v"),
            **described("rabbitmq:stream-match-unfiltered", False),
            **sql("n > 0"),
        },
    }
    messages = [
        message(b"0"),
        message(b"1", application={"n": 1}),
        message(b"2", application={"n": 2}),
        message(b"3", annotations={Symbol("x-stream-filter-value"): "v"}, application={"n": 1}),
    ]
    table(play, published(play, messages), cases)


@each(
    symbol=sql(Symbol("n = 1")),
    binary=sql(b"n = 1"),
    number=sql(UInt(1)),
    bare={Symbol(KEY): "n = 1"},
    properties=described(APPLICATION, {"n": 1}, key=KEY),
)
def sql_filters_that_are_no_text(play: Play, value: dict[Any, Any]) -> None:
    queue, peer = filled(play, "stream", 1)
    peer.attach(RECEIVER, queue, 1, terminus={"filter": value})
    peer.flow(1, link_credit=10)
    peer.note()


@each(
    overflow="1.0E300 * 1.0E300 > 0",
    literal="n = 1.0E999",
    conversion="n = 1" + "0" * 400 + " / 1",
    comparison="n < 1" + "0" * 400,
    float_comparison="0.5 < 1" + "0" * 400,
)
def sql_numbers_out_of_range(play: Play, text: str) -> None:
    queue = play.declare("stream")
    peer = play.peer().session().sender(queue, 0)
    peer.transfer(payload=message(b"1", application={"n": 1}))
    peer.frames()
    peer.attach(
        RECEIVER,
        queue,
        1,
        terminus={"filter": {**described("rabbitmq:stream-offset-spec", "first"), **sql(text)}},
    )
    peer.flow(1, link_credit=10)
    peer.note()
    peer.transfer(payload=message(b"2", application={"n": 2}))
    peer.note()


@scenario
def sql_filter_of_new_messages(play: Play) -> None:
    """A subscription that waits gets what passes, and credit is not used up by the others."""
    queue, peer = filled(play, "stream", 1)
    peer.attach(RECEIVER, queue, 1, terminus={"filter": sql("n = 1")})
    peer.flow(1, link_credit=2)
    peer.note()
    for number in (0, 1, 2, 1, 1):
        peer.transfer(payload=message(str(number).encode(), application={"n": number}))
        peer.note()
    peer.flow(1, delivery_count=UInt(2), link_credit=2, drain=True)
    peer.note()
