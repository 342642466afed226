"""What `poison_split` takes for poison, what it says about it, and what `dead_letters` makes of it."""

from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from fakeamqp.protocols.amqp_0_9_1.codec.tables import MAX_DEPTH
from fakeamqp.spark import ColumnError, OptionError, dead_letters, poison_split

# isort: split
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from pyspark.testing import assertDataFrameEqual

# All kinds of fields, and none of them has to be there.
LENIENT = (
    "name STRING, count INT, price DOUBLE, total DECIMAL(10, 2), at TIMESTAMP, day DATE, paid BOOLEAN, "
    "items ARRAY<INT>, stock MAP<STRING, INT>, place STRUCT<zip: INT, city: STRING>, photo BINARY"
)
FEW = "name STRING, count INT"
STRICT = "name STRING NOT NULL, count INT NOT NULL, place STRUCT<zip: INT NOT NULL, city: STRING>"

POISON = {
    None: "no body",
    b"": "empty body",
    b" \t\n": "empty body",
    b"\xff\xfe": "not valid UTF-8",
    b'{"name": "\xff"}': "not valid UTF-8",
    b"\x1f\x8b\x08\x00": "not valid UTF-8",
    b"hello": "not JSON",
    b"{": "not JSON",
    b'{"name": "x",}': "not JSON",
    b'{"name": "\x00"}': "not JSON",
    b"// a comment\n{}": "not JSON",
    b'\xef\xbb\xbf{"name": "x"}': "not JSON",
    b"[" * 2000: "not JSON",
    b'{"place": ' * 1500: "not JSON",
    b'{"count": ' + b"1" * 2000 + b"}": "not JSON",
    b'{"name": "x"} and more': "not JSON: text after the end of the object",
    b'{"name": "x"}{"name": "y"}': "not JSON: text after the end of the object",
    b'{"name": "x"}, {"name": "y"}': "not JSON: text after the end of the object",
    b'{"name": "x"}]': "not JSON: text after the end of the object",
    b'{"name": "x"}], [1': "not JSON: text after the end of the object",
    b"null": "not a JSON object: null",
    b"3": "not a JSON object: 3",
    b'"text"': 'not a JSON object: "text"',
    b'[{"name": "x"}]': 'not a JSON object: [{"name": "x"}]',
    b"[" + b"1," * 50 + b"1]": "not a JSON object: [" + "1," * 29 + "1…",
    b'{"count": "12"}': 'field count is not a number of type INT: "12"',
    b'{"count": 1.5}': "field count is not a number of type INT: 1.5",
    b'{"count": 99999999999}': "field count is not a number of type INT: 99999999999",
    b'{"price": "dear"}': 'field price is not a number of type DOUBLE: "dear"',
    b'{"total": 123456789.5}': "field total is not a number of type DECIMAL(10,2): 123456789.5",
    b'{"total": 1e999999999}': 'field total is not a number of type DECIMAL(10,2): "Infinity"',
    b'{"total": "1e-999999999"}': 'field total is not a number of type DECIMAL(10,2): "1e-999999999"',
    b'{"at": "soon"}': 'field at is not a timestamp: "soon"',
    b'{"at": -99999999999999999999}': "field at is not a timestamp: -99999999999999999999",
    b'{"day": "2026-02-30"}': 'field day is not a date: "2026-02-30"',
    b'{"day": 999999999999}': "field day is not a date: 999999999999",
    b'{"paid": "true"}': 'field paid is not a boolean: "true"',
    b'{"items": [1, "two"]}': 'field items is not ARRAY<INT>: [1,"two"]',
    b'{"stock": {"a": "none"}}': 'field stock is not MAP<STRING,INT>: {"a":"none"}',
    b'{"photo": "!"}': 'field photo is not BINARY: "!"',
    b'{"place": 7}': "field place is not an object: 7",
    b'{"place": "{\\"zip\\": 1}"}': 'field place is not an object: "{\\"zip\\": 1}"',
    b'{"place": {"zip": "1010", "city": "Wien"}}': 'field place.zip is not a number of type INT: "1010"',
    b'{"count": "1", "place": {"zip": 1, "zip": 2}}': "field count is not a number of type INT: 1",
    b'{"count": "1", "paid": 0}': (
        'field count is not a number of type INT: "1"; field paid is not a boolean: 0'
    ),
}
GOOD = (
    b"{}",
    b' {"name": "x"}\n',
    b'{"name": null, "count": null, "place": null}',
    b'{"name": "\\ud800"}',
    b'{"name": "\xe2\x82\xac", "extra": [1, {"deep": {}}]}',
    b'{"count": 1, "price": 2, "total": "1.50", "at": 12, "day": "2026-01-31", "paid": false}',
    b'{"items": [], "stock": {}, "place": {}, "photo": "aGk="}',
    b'{"name": "x", "name": "y"}',
    b'{"name": 7}',
)


@pytest.fixture
def messages(spark):
    """Makes what the source would give for these bodies."""

    def messages(*bodies, columns="routing_key STRING, queue STRING", values=("k", "q")):
        rows = [(None if body is None else bytearray(body), *values) for body in bodies]
        return spark.createDataFrame(rows, f"value BINARY, {columns}" if columns else "value BINARY")

    return messages


def reasons(poison):
    return {row.value if row.value is None else bytes(row.value): row.reason for row in poison.collect()}


def test_each_kind_of_poison_message_has_its_reason(messages):
    found = poison_split(messages(*POISON, *GOOD), LENIENT)
    assert reasons(found.poison) == POISON
    assert found.good.count() == len(GOOD)


def test_poison_reasons_do_not_depend_on_ansi_mode(spark, messages):
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false" if before == "true" else "true")
    try:
        assert reasons(poison_split(messages(*POISON, *GOOD), LENIENT).poison) == POISON
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_good_messages_have_their_fields_as_columns(spark, messages):
    good, _ = poison_split(
        messages(b'{"total": 1.5, "name": "x", "more": 1}', b"oops"), "name STRING, total DECIMAL(10, 2)"
    )
    expected = spark.createDataFrame(
        [("x", Decimal("1.50"), bytearray(b'{"total": 1.5, "name": "x", "more": 1}'), "k", "q")],
        "name STRING, total DECIMAL(10, 2), value BINARY, routing_key STRING, queue STRING",
    )
    assertDataFrameEqual(good, expected)


def test_poison_row_keeps_columns_and_has_reason(spark, messages):
    came = messages(b"\x00\xff")
    _, poison = poison_split(came, FEW)
    assertDataFrameEqual(poison, came.withColumn("reason", F.lit("not valid UTF-8")))


def test_a_schema_may_be_ddl_or_a_struct(spark):
    place = StructType().add("zip", "integer", nullable=False).add("city", "string")
    schema = StructType().add("name", "string", nullable=False).add("count", "integer", nullable=False)
    assert StructType.fromDDL(STRICT) == schema.add("place", place)


def test_message_with_missing_or_null_required_field_is_poison(messages):
    expected = {
        b"{}": "missing field name; missing field count",
        b'{"Name": "x", "count": 1}': "missing field name (found: Name, count)",
        b'{"name": null, "count": 1}': "field name is null",
        b'{"name": "x", "count": "y"}': 'field count is not a number of type INT: "y"',
        b'{"count": "y"}': 'missing field name (found: count); field count is not a number of type INT: "y"',
        b'{"name": "x", "count": 1, "place": {"city": "Wien"}}': "missing field place.zip (found: city)",
        b'{"name": "x", "count": 1, "place": {"zip": null}}': "field place.zip is null",
    }
    fine = (b'{"name": "", "count": 0}', b'{"name": "", "count": 0, "place": {"zip": 0}}')
    good, poison = poison_split(messages(*expected, *fine), STRICT)
    assert reasons(poison) == expected
    assert good.count() == len(fine)


def test_valid_message_matching_rule_is_poison_with_reason_of_rule(messages):
    rules = {
        "count below zero": "count < 0",
        "no name on this route": F.col("name").isNull() & (F.col("routing_key") == "k"),
    }
    expected = {
        b'{"name": "x", "count": -1}': "count below zero",
        b'{"count": -1}': "count below zero; no name on this route",
        b'{"count": "-1"}': 'field count is not a number of type INT: "-1"',
    }
    good, poison = poison_split(messages(*expected, b'{"name": "x"}'), FEW, rules=rules)
    assert reasons(poison) == expected
    assert [row.name for row in good.collect()] == ["x"]


def test_row_with_source_error_is_poison_with_reason_of_error(spark):
    rows = [
        (b'{"count": 1}', None),
        (b'{"count": 2}', ("timestamp is a time after the year 9999", b"\x00")),
        (b"oops", ("message_id is not UTF-8", b"\x01")),
    ]
    came = spark.createDataFrame(rows, "value BINARY, _error STRUCT<reason: STRING, octets: BINARY>")
    good, poison = poison_split(came, FEW)
    assert [row["count"] for row in good.collect()] == [1]
    assert reasons(poison) == {
        b'{"count": 2}': "timestamp is a time after the year 9999",
        b"oops": "message_id is not UTF-8; not JSON",
    }


def test_options_are_those_of_from_json(messages):
    split = poison_split(
        messages(b'{"at": "31.12.2026"}', b"{'name': 'x'}", b'{"price": NaN}', b'{"price": 1 /* euros */}'),
        "name STRING, price DOUBLE, at TIMESTAMP",
        options={
            "timestampFormat": "dd.MM.yyyy",
            "allowSingleQuotes": "false",
            "allowNonNumericNumbers": "false",
            "allowComments": "true",
        },
    )
    assert reasons(split.poison) == {b"{'name': 'x'}": "not JSON", b'{"price": NaN}': "not JSON"}
    with pytest.raises(OptionError, match="'MODE' cannot be set"):
        poison_split(messages(b"{}"), FEW, options={"MODE": "FAILFAST"})


def test_bodies_may_be_text_in_a_column_of_any_name(spark):
    bodies = spark.createDataFrame([("{}", 1), ("oops", 2)], "`the.body` STRING, value INT")
    good, poison = poison_split(bodies, "name STRING", body="the.body")
    columns = "`the.body` STRING, value INT"
    assertDataFrameEqual(good, spark.createDataFrame([(None, "{}", 1)], f"name STRING, {columns}"))
    expected = spark.createDataFrame([("oops", 2, "not JSON")], f"{columns}, reason STRING")
    assertDataFrameEqual(poison, expected)


def test_poison_split_with_invalid_schema_or_columns_is_refused(messages):
    df = messages(b"{}")
    for schema, arguments, said in (
        ("INT", {}, "must have fields"),
        (StructType(), {}, "must have fields"),
        ("name STRING", {"body": "valu"}, "no column 'valu' with the bodies; did you mean 'value'"),
        (
            "Queue STRING",
            {},
            r"field 'queue'; .* df.withColumnRenamed\('queue', 'amqp_queue'\), or drop it",
        ),
        (
            "value INT",
            {},
            r"field 'value'; .* df.withColumnRenamed\('value', 'amqp_value'\), and set body='amqp_v",
        ),
    ):
        with pytest.raises(ColumnError, match=said):
            poison_split(df, schema, **arguments)
    with pytest.raises(ColumnError, match="'value' is int; it must be BINARY or STRING"):
        poison_split(df.withColumn("value", F.lit(1)), "name STRING")
    with pytest.raises(ColumnError, match="already have a column 'reason'"):
        poison_split(df.withColumn("reason", F.lit(1)), "name STRING")


def test_poison_split_of_damaged_json_agrees_with_python_parser(spark):
    """What Python's parser takes is good, what it refuses is poison."""
    randomly = random.Random(7)
    whole = b' {"name": "\xe2\x82\xac 5\\u20ac", "n": [1, -2.5e3, true, null], "o": {"a": "b"}} '
    pieces = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"0", b"\xff", b"\x00", b" ", b"e", b"null"]
    bodies = set()
    while len(bodies) < 1000:
        body = whole
        for _ in range(randomly.randint(1, 2)):
            at = randomly.randrange(len(body))
            body = body[:at] + randomly.choice([b"", *pieces]) + body[at + randomly.randint(0, 2) :]
        bodies.add(body)

    def is_good(body):
        try:
            return isinstance(json.loads(body.decode()), dict)
        except ValueError:
            return False

    df = spark.createDataFrame(
        [(bytearray(body), body.hex()) for body in sorted(bodies)], "value BINARY, id STRING"
    )
    good, poison = poison_split(df, "name STRING", options={"allowSingleQuotes": "false"})
    expected = {body for body in bodies if is_good(body)}
    assert 50 < len(expected) < 950
    assert {bytes.fromhex(row.id) for row in good.collect()} == expected
    assert set(reasons(poison)) == bodies - expected


def test_dead_letter_has_headers_with_reason_and_original_route(spark, messages):
    df = messages(
        b"oops",
        columns="routing_key STRING, exchange STRING, queue STRING, headers MAP<STRING, STRING>, "
        "message_id STRING, offset BIGINT",
        values=(
            "orders.new",
            "shop",
            "orders",
            {"tenant": "7", "x-reason": "an older one", "CC": '["a"]'},
            "m",
            3,
        ),
    )
    letters = dead_letters(poison_split(df, FEW).poison, "shop.dead")
    assert [row.asDict() for row in letters.collect()] == [
        {
            "value": b"oops",
            "exchange": "shop.dead",
            "routing_key": "orders.new",
            "headers": {
                "tenant": "7",
                "x-reason": "not JSON",
                "x-original-exchange": "shop",
                "x-original-routing-key": "orders.new",
                "x-original-queue": "orders",
            },
            "message_id": "m",
        }
    ]


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        (None, {}),
        ("{}", {}),
        ('{"x-reason": "older", "CC": ["a"], "BCC": ["b"]}', {}),
        (
            '{"x-death": [{"count": 2, "queue": "}"}], "flag": true, "none": null}',
            {"x-death": [{"count": 2, "queue": "}"}], "flag": True, "none": None},
        ),
    ],
    ids=["none", "empty", "dropped", "typed"],
)
def test_headers_as_json_keep_their_types(messages, headers, kept):
    df = messages(b"oops", columns="queue STRING, headers STRING", values=("orders", headers))
    [row] = dead_letters(poison_split(df, FEW).poison, "dead", routing_key="k").collect()
    assert json.loads(row.headers) == {**kept, "x-reason": "not JSON", "x-original-queue": "orders"}


def test_dead_letter_of_row_without_headers_has_only_reason_header(messages):
    df = messages(b"oops", columns="", values=())
    [row] = dead_letters(poison_split(df, FEW).poison, "dead", routing_key="k").collect()
    assert (row.routing_key, row.headers) == ("k", {"x-reason": "not JSON"})


def test_properties_go_along_except_those_that_would_do_harm(messages):
    df = messages(
        b"oops",
        columns="properties STRUCT<content_type: STRING, priority: INT, expiration: STRING, user_id: STRING>",
        values=(("text/plain", 3, "1000", "ann"),),
    )
    letters = dead_letters(poison_split(df, FEW).poison, "dead", routing_key="k")
    assert letters.columns == ["value", "exchange", "routing_key", "headers", "content_type", "priority"]
    [row] = letters.collect()
    assert (row.content_type, row.priority) == ("text/plain", 3)


# What a message can have in place of 100 bytes that are no text.
REPLACED = "\ufffd" * 100


def nested(levels):
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize(
    ("kind", "rows"),
    {
        "map": (
            "MAP<STRING, STRING>",
            [
                ({"kept": "1", "none": None}, {"kept": "1", "none": None}),
                ({"kept": "1", REPLACED: "x"}, None),
                ({"large": "x" * 119_000}, {"large": "x" * 119_000}),
                ({"large": "é" * 65_000}, None),
                ({f"{number:05}": "" for number in range(11_000)}, None),
            ],
        ),
        "json": (
            "STRING",
            [
                ('{"kept":1}', {"kept": 1}),
                (nested(MAX_DEPTH), json.loads(nested(MAX_DEPTH))),
                (json.dumps({"list": [[1]] * 300}), {"list": [[1]] * 300}),
                (f'{{"kept":1,"{REPLACED}":2}}', None),
                (json.dumps({"large": "x" * 47_000}), {"large": "x" * 47_000}),
                (json.dumps({"large": [1] * 47_000}, separators=(",", ":")), None),
                (json.dumps({"large": "\x00" * 20_000}), None),
            ],
        ),
    }.values(),
    ids=["map", "json"],
)
def test_dead_letters_with_unsendable_headers_or_properties_are_shortened_and_sent(
    spark, amqp_broker, kind, rows
):
    """The source reads all of these; the sink refuses them in other rows."""
    amqp_broker.load_definitions({"queues": [{"name": "dead"}]})
    odd = (REPLACED, 9)
    poison = spark.createDataFrame(
        [(b"oops", str(number), REPLACED, "so", row[0], odd) for number, row in enumerate(rows)],
        "value BINARY, message_id STRING, routing_key STRING, reason STRING, "
        f"headers {kind}, properties STRUCT<correlation_id: STRING, delivery_mode: TINYINT>",
    )
    letters = dead_letters(poison.withColumn("message_id", F.concat("message_id", "routing_key")), "")
    assert {len(row.routing_key) for row in letters.select("routing_key").collect()} == {63}
    target = {"amqp.url": amqp_broker.url, "routingKey": "dead"}
    letters.write.format("amqp").options(**target).mode("append").save()
    messages = sorted(
        amqp_broker.queue("dead").messages, key=lambda each: int(each.message_id.rstrip("\ufffd"))
    )
    assert len(messages) == len(rows)
    added = {"x-reason": "so", "x-original-routing-key": REPLACED}
    for message, (headers, kept) in zip(messages, rows, strict=True):
        assert len(message.message_id) == len(message.correlation_id) == 63
        assert message.delivery_mode == 2
        if kept is None:
            found = dict(message.headers)
            text = found.pop("x-original-headers")
            compact = {"separators": (",", ":"), "ensure_ascii": False}
            whole = headers if kind == "STRING" else json.dumps(headers, **compact)
            assert len(text) == min(len(whole), 30_000)
            # A map has no order.
            assert text == whole or len(text) == 30_000 or json.loads(text) == json.loads(whole)
            assert found == added
        else:
            assert message.headers == {**kept, **added}


def test_dead_letters_need_a_reason_and_a_key(messages):
    with pytest.raises(ColumnError, match="needs the column 'reason'"):
        dead_letters(messages(b"oops"), "dead")
    with pytest.raises(ColumnError, match="needs the column 'routing_key'"):
        dead_letters(messages(b"oops", columns="reason STRING", values=("so",)), "dead")


def test_good_and_poison_rows_of_streaming_query_can_be_united(spark, amqp_stream, tmp_path):
    """Text files stand for a queue here: the source is no matter of the split."""
    tmp_path.joinpath("lines").write_text('{"name": "x"}\noops\n{"name": 7\n')

    def job(lines):
        good, poison = poison_split(lines, "name STRING NOT NULL")
        return good.select(F.col("name").alias("value")).unionByName(
            poison.select(F.col("reason").alias("value"))
        )

    amqp_stream.run_available(job(spark.readStream.text(str(tmp_path))))
    assert sorted(row.value for row in amqp_stream.rows) == ["not JSON", "not JSON", "x"]
