"""The options of the Spark source and sink: declared once, read from text and checked against each other."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.tools.spark_pages import FROM_KAFKA, field_texts
from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options import (
    ConnectionOptions,
    ReadOptions,
    WriteOptions,
    read_options,
    values,
    write_options,
)
from fakeamqp.spark.options.option import option, options_of
from fakeamqp.spark.options.other_names import KAFKA
from fakeamqp.spark.options.reading import OF_SINK, OF_SOURCE

URL = "amqp://guest:guest@localhost:5672/"
QUEUE = {"amqp.url": URL, "queue": "orders"}
STREAM = {"amqp.url": URL, "stream": "events"}
SHARDS = {**QUEUE, "shards": "2"}
MANAGEMENT = {"managementUrl": "http://host:15672"}
PATTERN = {"amqp.url": URL, "streamPattern": "events-.*", **MANAGEMENT}
RECORDS = (ConnectionOptions, ReadOptions, WriteOptions)


def test_every_field_is_option_with_text_that_names_words_of_its_choice():
    for record in RECORDS:
        options = {each.field: each for each in options_of(record).values()}
        texts = field_texts(record)
        assert {each.name for each in fields(record)} - {"connection"} == options.keys() == texts.keys()
        with cases() as case:
            for field, each in options.items():
                words = re.findall(r"one of ([\w, ]+)", refusal(each.parse, "?"))
                with case(field):
                    assert [
                        word
                        for word in ", ".join(words).split(", ")
                        if f"`{word}`" not in f"``{texts[field]}"
                    ] == []


def refusal(parse, text):
    """What a parser says of a text; "" if it takes it."""
    try:
        parse(text)
    except ValueError as expected:
        return str(expected)
    return ""


def test_each_name_and_alias_means_one_option():
    for known in (OF_SOURCE, OF_SINK):
        declared = {each.field: each.names for each in known.values()}
        assert sorted(known) == sorted(name.lower() for names in declared.values() for name in names)
    shared = OF_SOURCE.keys() & OF_SINK.keys()
    assert [name for name in shared if OF_SOURCE[name] != OF_SINK[name]] == []


def test_default_value_is_what_its_text_is_parsed_to():
    @dataclass
    class Example:
        limit: int = option("limit", values.size, default="2k")
        names: tuple[str, ...] = option("names", values.names, unset=())
        url: str | None = option("url", str, secret=True)

    assert (Example().limit, Example().names, Example().url) == (2048, (), None)
    assert "url" not in repr(Example())


@pytest.mark.parametrize("spell", [str.lower, str.upper, str], ids=["lower", "upper", "as documented"])
def test_the_case_of_keys_does_not_matter(spell):
    options = read_options({spell("amqp.url"): URL, spell("queue"): "Orders", spell("ackMode"): "COMMIT"})
    assert (options.connection.urls, options.queues, options.ack_mode) == ((URL,), ("Orders",), "commit")


def test_default_of_transport_is_that_of_the_environment_unless_messages_are_in_memory(monkeypatch):
    monkeypatch.delenv("FAKEAMQP_SPARK_TRANSPORT", raising=False)
    found = [read_options({**QUEUE, **more}).transport for more in ({}, {"transport": "file"})]
    monkeypatch.setenv("FAKEAMQP_SPARK_TRANSPORT", "file")
    given = {}, {"transport": "inline"}, {"ackMode": "commit"}, {"ackMode": "none"}
    found += [read_options({**QUEUE, **more}).transport for more in given]
    assert found == ["inline", "file", "file", "inline", "inline", "inline"]


def test_missing_read_and_write_options_have_default_values(monkeypatch):
    monkeypatch.delenv("FAKEAMQP_SPARK_TRANSPORT", raising=False)
    options = read_options(QUEUE)
    assert (options.ack_mode, options.max_messages, options.prefetch) == ("spool", 10_000, 20_000)
    assert options.spool_sync and options.fail_on_data_loss
    assert (options.dedupe, options.transport, options.filter_pushdown) == ("content", "inline", False)
    assert (options.max_bytes, options.connection.heartbeat) == (256 << 20, None)
    sink = write_options({"amqp.url": URL})
    assert (sink.exchange, sink.routing_key, sink.mandatory, sink.on_return) == (None, None, True, "fail")


def test_given_read_options_fill_their_fields():
    with cases() as case:
        for given, field, value in [
            ({"maxMessagesPerTrigger": "50000"}, "prefetch", 65535),
            ({"idleTimeout": "2 minutes"}, "idle_timeout", 120.0),
            ({"maxBytesPerTrigger": "64k"}, "max_bytes", 65536),
            ({"queue": "orders, returns "}, "queues", ("orders", "returns")),
            ({"queue": "a,b", "shards": "2"}, "queues", ("a", "b")),
            ({"shards": "1"}, "queues", ("orders",)),
            ({"shards": "3"}, "queues", ("orders-0", "orders-1", "orders-2")),
            ({"queue": "orders-{2..4}", "shards": "3"}, "queues", ("orders-2", "orders-3", "orders-4")),
            ({"consumerPriority": "-5"}, "consumer_priority", -5),
            ({**MANAGEMENT}, "management_url", "http://host:15672"),
            ({"dedupe": "MESSAGE_ID"}, "dedupe", "message_id"),
            ({"spoolSync": "none"}, "spool_sync", False),
            ({"minPartitions": "3"}, "min_partitions", 3),
            ({"maxBytesPerTrigger": "0"}, "max_bytes", 0),
        ]:
            with case(given):
                assert getattr(read_options({**QUEUE, **given}), field) == value


def test_given_options_of_streams_fill_their_fields():
    with cases() as case:
        for given, field, value in [
            ({}, "max_bytes", None),
            ({**MANAGEMENT}, "management_url", "http://host:15672"),
            ({"streamFilter": "a, b"}, "stream_filter", ("a", "b")),
            ({"streamFilter": "a", "streamMatchUnfiltered": "true"}, "stream_match_unfiltered", True),
            ({"filterPushdown": "true"}, "filter_pushdown", True),
            ({"spoolDir": "/has/no/effect", "dedupe": "none"}, "spool_folder", "/has/no/effect"),
            ({}, "starting_offsets_by_timestamp_strategy", "error"),
            (
                {"startingOffsetsByTimestampStrategy": "latest"},
                "starting_offsets_by_timestamp_strategy",
                "latest",
            ),
        ]:
            with case(given):
                assert getattr(read_options({**STREAM, **given}), field) == value
    found = read_options(PATTERN)
    assert (found.stream_pattern, found.streams, found.management_url) == (
        "events-.*",
        (),
        "http://host:15672",
    )


@pytest.mark.parametrize(
    ("alias", "key", "value"),
    [
        ("subscribe", "stream", "a,b"),
        ("subscribePattern", "streamPattern", "a.*"),
        ("maxOffsetsPerTrigger", "maxMessagesPerTrigger", "7"),
        ("startingOffsetsByTimestamp", "startingTimestamp", '{"events": 1000}'),
        ("endingOffsetsByTimestamp", "endingTimestamp", '{"events": 1000}'),
    ],
)
def test_kafkas_name_sets_option_of_the_same_meaning_and_is_refused_beside_it(alias, key, value):
    others = {"amqp.url": URL, **(MANAGEMENT if "Pattern" in key else {} if key == "stream" else STREAM)}
    expected = read_options({**others, key: value})
    assert (
        expected == read_options({**others, alias: value}) == read_options({**others, alias.upper(): value})
    )
    with pytest.raises(OptionError, match=f"options '{alias}' and '{key}' are the same: set only one"):
        read_options({**others, alias: value, key: value})


@pytest.mark.parametrize(
    "key",
    [
        "startingOffsetsByTimestamp",
        "startingTimestamp",
        "endingTimestamp",
        "startingOffsets",
        "endingOffsets",
    ],
)
def test_kafkas_values_by_partition_are_refused_with_what_to_write(key):
    given = {**STREAM, key: '{"events": {"0": 1000, "1": 2000}}'}
    with pytest.raises(
        OptionError, match=rf"'{key}' is .*one value for every stream, such as {{\"events\": 1000}}"
    ):
        read_options(given)


def test_every_option_of_kafka_is_accepted_or_refused_with_hint():
    with cases() as case:
        for name in FROM_KAFKA:
            with case(name):
                assert (name.lower() in OF_SOURCE) != (name in KAFKA)
                if name in KAFKA:
                    keys, why = KAFKA[name]
                    assert [key for key in keys if key.lower() not in {**OF_SOURCE, **OF_SINK}] == []
                    refusals = [
                        refused(parse, name.replace("*", "acks")) for parse in (read_options, write_options)
                    ]
                    assert all(f"'{key}'" in " ".join(refusals) for key in keys)
                    assert why.replace("`", "'") in " ".join(refusals)
    assert KAFKA.keys() <= FROM_KAFKA.keys()
    assert [each.alias for each in OF_SOURCE.values() if each.alias and each.alias not in FROM_KAFKA] == []


def refused(parse, name):
    """What the error about one option says, whose value is a secret."""
    with pytest.raises(OptionError) as caught:
        parse({"amqp.url": URL, name: "s3cret"})
    assert "s3cret" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("parse", "name", "said"),
    [
        *(
            (parse, name, f"there is no option '{name}'; set '{key}'")
            for parse in (read_options, write_options)
            for name, key in [
                ("vhost", "amqp.virtualHost"),
                ("virtualHost", "amqp.virtualHost"),
                ("virtual_host", "amqp.virtualHost"),
                ("host", "amqp.url"),
                ("port", "amqp.url"),
                ("url", "amqp.url"),
                ("URI", "amqp.url"),
                ("username", "amqp.username"),
                ("user", "amqp.username"),
                ("password", "amqp.password"),
                ("heartbeat", "amqp.heartbeat"),
            ]
        ),
        (read_options, "queueName", "there is no option 'queueName'; set 'queue'"),
        (write_options, "queueName", "there is no option 'queueName'; set 'routingKey'"),
        (read_options, "topic", "there is no option 'topic'; set 'stream'"),
        (write_options, "topic", "there is no option 'topic'; set 'exchange' or 'routingKey': a routing key"),
        (read_options, "exchangeName", "there is no option 'exchangeName'; set 'queue'"),
        (write_options, "exchangeName", "there is no option 'exchangeName'; set 'exchange'"),
        (write_options, "queue", "option 'queue' is for reading, not for writing; set 'routingKey'"),
        (
            write_options,
            "subscribe",
            "'stream' is for reading, not for writing; set 'exchange' or 'routingKey'",
        ),
        (read_options, "routingKey", "option 'routingKey' is for writing, not for reading; set 'queue'"),
        (read_options, "kafka.bootstrap.servers", "; set 'amqp.url': one or more URLs such as 'amqp://"),
        (write_options, "assign", "there is no option 'assign': a stream has no partitions"),
        (read_options, "groupIdPrefix", "there is no option 'groupIdPrefix': there are no consumer groups"),
        (read_options, "kafka.sasl.mechanism", "option 'kafka.sasl.mechanism': it is a setting of Kafka's"),
        (read_options, "prefech", "there is no option 'prefech'; did you mean 'prefetch'?"),
        (read_options, "AMQP.HEARTBEET", "did you mean 'amqp.heartbeat'?"),
        (read_options, "subscribePatern", "did you mean 'subscribePattern'?"),
        (read_options, "maxBytes", "did you mean 'maxBytesPerTrigger'?"),
        (write_options, "exchnge", "did you mean 'exchange'?"),
    ],
)
def test_error_of_unknown_option_says_what_to_set(parse, name, said):
    assert said in refused(parse, name)


@pytest.mark.parametrize("name", ["minMessagesPerTrigger", "spool", "sort", "report", "durable"])
def test_error_of_unknown_option_names_no_option_of_another_meaning(name):
    assert refused(read_options, name) == f"there is no option {name!r}"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "option 'amqp.url' is missing"),
        ({"amqp.url": URL}, "set the option 'queue' for classic"),
        ({**QUEUE, **STREAM}, "only one of them"),
        ({**QUEUE, "path": "x"}, "load() takes no path"),
        ({**QUEUE, "prefetch": "0"}, "'0'; it has to be a whole number from 1 to 65535"),
        ({**QUEUE, "ackMode": "comit"}, "one of spool, commit, none; did you mean 'commit'?"),
        ({**QUEUE, "failOnDataLoss": "perhaps"}, "true or false"),
        ({**QUEUE, "idleTimeout": "soon"}, "a time such as 500ms"),
        ({**QUEUE, "maxBytesPerTrigger": "big"}, "a size in bytes"),
        ({**QUEUE, "queue": "a,,b"}, "none of them empty"),
        ({**QUEUE, "queue": "[1]"}, "a JSON list of strings"),
        ({**QUEUE, "startingOffsets": "latest"}, "'startingOffsets' is for 'stream'"),
        ({**QUEUE, "startingTimestamp": "0"}, "'startingTimestamp' is for 'stream': a queue has no offsets"),
        ({**QUEUE, "startingOffsetsByTimestamp": "0"}, "'startingOffsetsByTimestamp' is for 'stream'"),
        ({**STREAM, "ackMode": "none"}, "'ackMode' is for 'queue'"),
        ({**STREAM, "allowDeliveryLimit": "true"}, "'allowDeliveryLimit' is for 'queue'"),
        ({**QUEUE, "queue": "é" * 128}, "at most 255 bytes of UTF-8"),
        ({**STREAM, "stream": f'["a", "{"b" * 256}"]'}, "at most 255 bytes of UTF-8"),
        ({**QUEUE, "spoolDir": "~/spool"}, "'~/spool'; it has to be a path without ~"),
        ({**QUEUE, "amqp.connectionTimeout": "0s"}, "'0s'; it has to be a time above 0"),
        ({**QUEUE, "ackMode": "commit", "spoolDir": "/x"}, "'spoolDir' is for ackMode=spool, not commit"),
        *(
            ({**QUEUE, "ackMode": "none", key: value}, f"'{key}' is for ackMode=spool, not none")
            for key, value in [
                ("spoolSync", "none"),
                ("spoolFlushRows", "1"),
                ("spoolFlushInterval", "1s"),
                ("transport", "file"),
                ("dedupe", "none"),
            ]
        ),
        ({**QUEUE, "timestampTolerance": "1s"}, "'timestampTolerance' is for 'stream'"),
        ({**SHARDS, "queue": "a,b", "shards": "3"}, "'shards' is 3, and option 'queue' names 2"),
        ({**SHARDS, "prefetch": "3"}, "'prefetch' does not go with 'shards'"),
        ({**SHARDS, "prefetchBytes": "3"}, "'prefetchBytes' does not go with 'shards'"),
        ({**SHARDS, "allowDeliveryLimit": "true"}, "'allowDeliveryLimit' does not go with 'shards'"),
        ({"amqp.url": URL, "superStream": "a", "shards": "2"}, "'superStream' does not go with 'shards'"),
        ({**SHARDS, "ackMode": "commit"}, "is for ackMode=spool"),
        ({**QUEUE, "shardExchange": "x"}, "'shardExchange' needs the option 'shards'"),
        (
            {**STREAM, "streamMatchUnfiltered": "true"},
            "'streamMatchUnfiltered' needs the option 'streamFilter'",
        ),
        ({**QUEUE, "streamFilter": "a"}, "'streamFilter' is for 'stream'"),
        ({**STREAM, "consumerPriority": "1"}, "'consumerPriority' is for 'queue'"),
        ({**QUEUE, "consumerPriority": "high"}, "it has to be a whole number from -2147483648 to 2147483647"),
        ({**QUEUE, "transport": "auto"}, "one of inline, file"),
        ({**QUEUE, "filterPushdown": "true"}, "'filterPushdown' is for 'stream'"),
        (
            {**STREAM, "maxBytesPerTrigger": "1"},
            "'maxBytesPerTrigger' is for 'queue': the size of a stream's",
        ),
        (
            {**STREAM, "maxOffsetsPerTrigger": "0"},
            "'maxOffsetsPerTrigger' is '0'; it has to be a whole number",
        ),
        ({**STREAM, **PATTERN}, "only one of them"),
        ({"amqp.url": URL, "streamPattern": "a"}, "'streamPattern' needs the option 'managementUrl'"),
        ({**PATTERN, "streamPattern": "("}, "'('; it has to be a regular expression of Python (missing )"),
        *(
            (
                {"amqp.url": URL, "superStream": "events", "managementUrl": url},
                "'managementUrl' is ***; it has to be a URL such as http://host:15672",
            )
            for url in ("amqp://me:s3cret@host", "http://me:1/s3cret@host:15672")
        ),
        ({**QUEUE, "amqp.url": "amqp://me:s3cret@localhost,"}, "'amqp.url'"),
    ],
)
def test_invalid_read_options_are_refused_without_showing_password(given, said):
    with pytest.raises(OptionError, match=re.escape(said)) as caught:
        read_options(given)
    assert "s3cret" not in str(caught.value)


def test_repr_of_options_shows_no_password():
    given = {"amqp.password": "s3cret", "managementUrl": "http://me:s3cret@host:15672"}
    found = read_options({"amqp.url": "amqp://me:s3cret@localhost/", "superStream": "events", **given})
    assert found.connection.password == "s3cret" and "s3cret" not in repr(found)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "option 'amqp.url' is missing"),
        ({"amqp.url": URL, "path": "x"}, "'exchange' and 'routingKey'"),
        ({"amqp.url": URL, "onReturn": "panic"}, "one of fail, drop"),
        ({"amqp.url": URL, "confirmTimeout": "0"}, "'0'; it has to be a time above 0"),
        ({"amqp.url": URL, "routingKey": "é" * 128}, "at most 255 bytes of UTF-8"),
        ({"amqp.url": URL, "exchange": "x" * 256}, "at most 255 bytes of UTF-8"),
        ({"amqp.url": "http://me:s3cret@host:15672/"}, "and not of the http API for management"),
        ({"amqp.url": "me:s3cret@host:5672"}, "one or more URLs such as amqp://user:password@host:5672/"),
        ({"amqp.url": f"{URL},amqp://me:s3cret@host:x/"}, "a URL with a port from 0 to 65535"),
        (
            {"amqp.url": URL, "amqp.password": "s3cret", "amqp.passwordFile": "f"},
            "options 'amqp.password' and 'amqp.passwordFile': set only one of them",
        ),
        (
            {"amqp.url": URL, "amqp.mechanism": "EXTERNAL"},
            "needs amqps:// URLs and the option 'amqp.certFile'",
        ),
        (
            {"amqp.url": "amqps://host/", "amqp.mechanism": "EXTERNAL", "amqp.passwordEnv": "P"},
            "'amqp.passwordEnv' is for amqp.mechanism=PLAIN",
        ),
    ],
)
def test_invalid_write_options_are_refused_without_showing_password(given, said):
    with pytest.raises(OptionError, match=re.escape(said)) as caught:
        write_options(given)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("host", ["host:5672", "host"])
@pytest.mark.parametrize(
    "part",
    [
        *(f"me:{secret}@HOST/" for secret in ("s3/cret", "1/s3cret", "s3#cret", "1#s3cret", "s3?cret")),
        *(f"me:{secret}@HOST/" for secret in ("1?s3cret", "s3[cret", "s3]cret", "s3,cret")),
        *("me:s3cret@HOST/v#x", "HOST/a/b", "HOST/a/", "HOST//", "HOST/a;b"),
    ],
)
def test_special_characters_of_a_url_have_to_be_encoded(part, host):
    with pytest.raises(OptionError, match=r"percent-encoded, such as %2F for / and %40 for @") as caught:
        write_options({"amqp.url": f"amqp://{part.replace('HOST', host)}"})
    assert not re.search("s3|cret", str(caught.value))
    encoded = f"amqp://me:s3%2F%23%3F%5Bcret@{host}/a%2Fb%3B?heartbeat=5"
    assert write_options({"amqp.url": encoded}).connection.urls == (encoded,)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("endingOffsets", "latest"),
        ("endingTimestamp", "0"),
        ("timestampTolerance", "1s"),
        ("filterPushdown", "true"),
        ("allowDeliveryLimit", "true"),
    ],
)
def test_batch_only_options_are_refused_for_streaming_query(key, value):
    given = {**(QUEUE if key == "allowDeliveryLimit" else STREAM), key: value}
    assert read_options(given)
    with pytest.raises(OptionError, match=f"'{key}' is for batch reads"):
        read_options(given, streaming=True)


def test_a_stream_of_a_queue_needs_a_place_for_its_spool():
    with pytest.raises(OptionError, match="'spoolDir' is missing"):
        read_options(QUEUE, streaming=True)
    assert read_options({**QUEUE, "ackMode": "commit"}, streaming=True).spool_folder is None
    assert read_options(STREAM, streaming=True).streams == ("events",)


@pytest.mark.parametrize("parse", [read_options, write_options])
@pytest.mark.parametrize(
    "given",
    [
        {"provider": "amqp", "owner": "me", "amqp.url": URL, "option.amqp.url": URL},
        {"option.QUEUE": "orders", **QUEUE},
        {"owner": "me", "provider": "amqp"},
        {},
    ],
    ids=["create", "a queue", "without options", "read"],
)
def test_tables_of_the_catalog_are_not_supported(parse, given):
    with pytest.raises(OptionError, match=r"tables of the catalog are not supported.*CREATE TEMPORARY VIEW"):
        parse(given)


def test_error_of_missing_url_with_other_options_does_not_mention_tables():
    with pytest.raises(OptionError, match=r"'amqp.url' is missing.*:port/$"):
        read_options({"queue": "orders"})


def test_options_of_spark_itself_are_ignored():
    assert write_options({"amqp.url": URL, "checkpointLocation": "/x", "queryName": "q"}).exchange is None


class Refused(str):
    """A pattern of the error where a parser refuses a text."""


#: What each parser makes of texts.
PARSED = {
    values.short_text: [
        ("x" * 255, "x" * 255),
        ("é" * 127, "é" * 127),
        ("x" * 256, Refused("at most 255 bytes")),
    ],
    values.boolean: [
        *((word, True) for word in ("true", "TRUE ", "1", "yes")),
        *((word, False) for word in ("false", " False", "0", "no")),
        ("", Refused("true or false")),
    ],
    values.whole(): [
        ("1", 1),
        (" 70000 ", 70000),
        ("0", Refused("a whole number from 1$")),
        ("-1", Refused("from 1$")),
    ],
    values.whole(0, 9): [
        ("0", 0),
        ("9", 9),
        ("10", Refused("from 0 to 9$")),
        ("1.5", Refused("a whole number")),
        ("", Refused("a whole number")),
    ],
    values.whole(2): [("2", 2), ("1", Refused("a whole number from 2$"))],
    values.whole(-5, 5): [
        ("-5", -5),
        (" 5 ", 5),
        ("-6", Refused("from -5 to 5$")),
        ("- 5", Refused("from -5")),
    ],
    values.duration: [
        *(
            (text, 2.0)
            for text in ("2", " 2 s ", "2s", "2 sec", "2 secs", "2 Seconds", "2000ms", "2.0second")
        ),
        *((text, 90.0) for text in ("1.5m", "1.5 min", "1.5 minutes", "90 S")),
        *((text, 7200.0) for text in ("2h", "2 hour", "2 hours")),
        *((text, 0.25) for text in ("250 milliseconds", "250ms", "0.25", "250 millisecond")),
        ("0", 0.0),
        *(
            (text, Refused("a time such as 500ms"))
            for text in ("", "s", "1 sss", "-1s", "1 d", "1s 2", ".5s", "1.s")
        ),
    ],
    values.timeout: [
        ("1ms", 0.001),
        ("0.0s", Refused("a time above 0")),
        ("soon", Refused("a time such as 500ms")),
    ],
    values.size: [
        *((text, 1536) for text in ("1536", "1536b", "1.5k", "1.5 KB")),
        *((text, 2 << 20) for text in ("2m", "2 MB", "2048k")),
        *((text, 3 << 30) for text in ("3g", "3Gb")),
        *((text, Refused("a size in bytes, such as 65536, 64k")) for text in ("", "1t", "1 kbs", "1ks", "k")),
    ],
    values.folder: [("/a/~b", "/a/~b"), ("a", "a"), ("~", Refused("a path without ~"))],
    values.choice("auto", "Inline"): [
        ("AUTO ", "auto"),
        ("inline", "Inline"),
        ("inlin", Refused(r"^one of auto, Inline; did you mean 'Inline'\?$")),
        ("x", Refused("^one of auto, Inline$")),
    ],
    values.names: [
        ("a, b", ("a", "b")),
        (' ["a,b", " c"]', ("a,b", " c")),
        ("x" * 255, ("x" * 255,)),
        ("[]", Refused("at least one name, and none of them empty")),
        ('["a", ""]', Refused("none of them empty")),
        ('["a", null]', Refused("a JSON list of strings")),
        ("[a", Refused(r'names with commas between them, or a JSON list of strings such as \["a", "b"\]')),
        ("a,a", Refused("names that are all different")),
        (f"a,{'x' * 256}", Refused("at most 255 bytes")),
    ],
    values.texts: [
        ("x" * 256, ("x" * 256,)),
        ('["a b "]', ("a b ",)),
        ("[" * 100_000, Refused("a JSON list")),
    ],
    values.switch("fsync", "none"): [
        ("FSYNC ", True),
        ("none", False),
        ("no", Refused("one of fsync, none")),
    ],
    values.pattern: [
        ("a.*", "a.*"),
        ("(", Refused(r"^a regular expression of Python \(missing \)")),
    ],
    values.by_stream: [
        *((text, text) for text in ("latest", "1000", "2030-01-31T12:00:00Z", '{"a": 5}', '{"a"', "[{}]")),
        (
            '{"a": {"0": 5, "1": 6}, "b": {}}',
            Refused(r'^one value for every stream, such as {"a": 5, "b": 0}:'),
        ),
    ],
    values.column_names: [
        ("Value, OFFSET", ("value", "offset")),
        ('["A"]', ("a",)),
        ("a,A", Refused("all different")),
    ],
    values.ranged_names: [
        ("o-{0..2}", ("o-0", "o-1", "o-2")),
        ("o-{08..10}x", ("o-08x", "o-09x", "o-10x")),
        ("{1..2}-{3..4},z", ("1-3", "1-4", "2-3", "2-4", "z")),
        ("{7..7}", ("7",)),
        ('["o-{0..2}"]', ("o-{0..2}",)),
        ("{0..1023}", tuple(map(str, range(1024)))),
        ("{2..1026}", Refused(r"a range such as \{0\.\.3\}, of at most 1024 names")),
        ("{1..0}", Refused("a range such as")),
        ("o-{0..1},o-1", Refused("names that are all different")),
        ("{0..9999999999}", ("{0..9999999999}",)),
    ],
    values.http_url: [
        *(
            (text, text.strip())
            for text in ("http://h", " https://u:p@h:15671/ ", "http://u:p@h/@", "http://h/a")
        ),
        *(
            (text, Refused("a URL such as http://host:15672"))
            for text in ("ftp://h", "http://", "http://h:0", "http://h:x", "http://h?a", "http://h#a")
        ),
        *(
            (text, Refused("a URL such as"))
            for text in ("http://h/a@b", "http://u@h?x", "http://u:p@h/?@", "h", "http://[")
        ),
    ],
    values.urls: [
        ("amqp://h, amqps://u:p@h:1/%2F", ("amqp://h", "amqps://u:p@h:1/%2F")),
        ("amqp://h/?heartbeat=5", ("amqp://h/?heartbeat=5",)),
        ("amqp://u:p@h/v@", ("amqp://u:p@h/v@",)),
        ("amqp://h:0", ("amqp://h:0",)),
        (f"amqp://me:{'x' * 2000}@h:1/", (f"amqp://me:{'x' * 2000}@h:1/",)),
        *(
            (text, Refused("one or more URLs such as amqp://.*; special"))
            for text in ("amqp:h", "tcp://h", "amqp")
        ),
        *(
            (f"{name}://h", Refused(f"and not of the {name} API for management"))
            for name in ("http", "https")
        ),
        ("http:h", Refused("one or more URLs such as .*; special characters")),
        *(
            (text, Refused("a URL with a port from 0 to 65535 and"))
            for text in ("amqp://h:65536", "amqp://[", "amqp://h:x")
        ),
        *(
            (text, Refused("nothing but the name of a virtual host"))
            for text in ("amqp://h/a@b", "amqp://h/?a@b", "amqp://h/a/b", "amqp://h/a;b", "amqp://h/#a")
        ),
    ],
}


def test_option_values_are_parsed_or_refused():
    with cases() as case:
        for parse, texts in PARSED.items():
            for given, expected in texts:
                with case(parse.__qualname__, given[:40]):
                    if isinstance(expected, Refused):
                        with pytest.raises(ValueError, match=expected):
                            parse(given)
                    else:
                        assert parse(given) == expected
