"""The options of the Spark source and sink: one table, checked against itself and against each other."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options import (
    OPTIONS,
    ConnectionOptions,
    ReadOptions,
    WriteOptions,
    read_options,
    write_options,
)

URL = "amqp://guest:guest@localhost:5672/"
QUEUE = {"amqp.url": URL, "queue": "orders"}
STREAM = {"amqp.url": URL, "stream": "events"}


def test_every_option_fills_a_field_and_every_field_has_an_option():
    filled = {option.field for option in OPTIONS}
    wanted = {
        field.name for kind in (ConnectionOptions, ReadOptions, WriteOptions) for field in fields(kind)
    } - {"connection"}
    assert filled == wanted


def test_keys_are_unlike_even_without_their_case():
    keys = [option.key.lower() for option in OPTIONS]
    assert sorted(set(keys)) == sorted(keys)


@pytest.mark.parametrize("spell", [str.lower, str.upper, str], ids=["lower", "upper", "as documented"])
def test_the_case_of_keys_does_not_matter(spell):
    options = read_options({spell("amqp.url"): URL, spell("queue"): "Orders", spell("ackMode"): "COMMIT"})
    assert (options.connection.urls, options.queues, options.ack_mode) == ((URL,), ("Orders",), "commit")


def test_defaults():
    options = read_options(QUEUE)
    assert (options.ack_mode, options.max_messages, options.prefetch) == ("spool", 10_000, 20_000)
    assert options.spool_sync and options.dedupe and options.fail_on_data_loss
    assert options.connection.heartbeat is None
    sink = write_options({"amqp.url": URL})
    assert (sink.exchange, sink.routing_key, sink.mandatory, sink.on_return) == (None, None, True, "fail")


def test_prefetch_follows_the_batch_as_far_as_the_protocol_can_count():
    assert read_options({**QUEUE, "maxMessagesPerTrigger": "50000"}).prefetch == 65535


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("orders", ("orders",)),
        ("orders, returns ", ("orders", "returns")),
        ('["a,b", "c"]', ("a,b", "c")),
    ],
)
def test_several_queues(value, names):
    assert read_options({"amqp.url": URL, "queue": value}).queues == names


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("500ms", 0.5), ("30s", 30.0), ("2 minutes", 120.0), ("1 hour", 3600.0), ("7", 7.0)],
)
def test_times(value, seconds):
    assert read_options({**QUEUE, "idleTimeout": value}).idle_timeout == seconds


@pytest.mark.parametrize(
    ("value", "octets"), [("65536", 65536), ("64k", 65536), ("16 MB", 16 << 20), ("1g", 1 << 30)]
)
def test_sizes(value, octets):
    assert read_options({**QUEUE, "maxBytesPerTrigger": value}).max_bytes == octets


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "option 'amqp.url' is missing"),
        ({"amqp.url": URL}, "set the option 'queue' for classic"),
        ({**QUEUE, **STREAM}, "only one of them"),
        ({**QUEUE, "prefech": "1"}, "no option 'prefech'; did you mean 'prefetch'?"),
        ({**QUEUE, "AMQP.HEARTBEET": "1"}, "did you mean 'amqp.heartbeat'?"),
        ({**QUEUE, "exchange": "x"}, "'exchange' is for writing, not for reading"),
        ({**QUEUE, "path": "x"}, "load() takes no path"),
        ({**QUEUE, "prefetch": "0"}, "'0'; it has to be a whole number from 1 to 65535"),
        ({**QUEUE, "ackMode": "comit"}, "one of spool, commit, none; did you mean 'commit'?"),
        ({**QUEUE, "failOnDataLoss": "perhaps"}, "true or false"),
        ({**QUEUE, "idleTimeout": "soon"}, "a time such as 500ms"),
        ({**QUEUE, "idleTimeout": "3 parsecs"}, "a time such as 500ms"),
        ({**QUEUE, "maxBytesPerTrigger": "big"}, "a size in bytes"),
        ({**QUEUE, "queue": "a,,b"}, "none of them empty"),
        ({**QUEUE, "queue": "a,a"}, "all different"),
        ({**QUEUE, "queue": '["a"'}, "a JSON list"),
        ({**QUEUE, "queue": "[1]"}, "a JSON list of strings"),
        ({**QUEUE, "startingOffsets": "latest"}, "'startingOffsets' is for 'stream'"),
        ({**QUEUE, "startingTimestamp": "0"}, "'startingTimestamp' is for 'stream'"),
        ({**STREAM, "ackMode": "none"}, "'ackMode' is for 'queue'"),
        ({**STREAM, "allowDeliveryLimit": "true"}, "'allowDeliveryLimit' is for 'queue'"),
        ({**QUEUE, "queue": "é" * 128}, "at most 255 bytes of UTF-8"),
        ({**STREAM, "stream": f'["a", "{"b" * 256}"]'}, "at most 255 bytes of UTF-8"),
        ({**QUEUE, "spoolDir": "~/spool"}, "'~/spool'; it has to be a path without ~"),
        ({**QUEUE, "amqp.connectionTimeout": "0s"}, "'0s'; it has to be a time above 0"),
        ({**QUEUE, "ackMode": "commit", "spoolDir": "/x"}, "'spoolDir' is for ackMode=spool, not commit"),
    ],
)
def test_what_cannot_be_read(given, said):
    with pytest.raises(OptionError, match=re.escape(said)):
        read_options(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "option 'amqp.url' is missing"),
        ({"amqp.url": URL, "exchnge": "x"}, "did you mean 'exchange'?"),
        ({"amqp.url": URL, "queue": "x"}, "'queue' is for reading, not for writing"),
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
def test_what_cannot_be_written(given, said):
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


def test_a_url_of_the_http_api_has_no_password_in_its_path():
    with pytest.raises(OptionError, match=r"it has to be a URL such as http://host:15672") as caught:
        read_options(
            {"amqp.url": URL, "superStream": "events", "managementUrl": "http://me:1/s3cret@host:15672"}
        )
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("key", ["endingOffsets", "endingTimestamp", "timestampTolerance"])
def test_what_streaming_queries_do_not_have(key):
    value = {"endingOffsets": "latest", "endingTimestamp": "0", "timestampTolerance": "1s"}[key]
    assert read_options({**STREAM, key: value})
    with pytest.raises(OptionError, match=f"'{key}' is for batch reads"):
        read_options({**STREAM, key: value}, streaming=True)


def test_a_token_in_a_url_may_be_long():
    url = f"amqp://me:{'x' * 2000}@host:5672/"
    assert read_options({**QUEUE, "amqp.url": url}).connection.urls == (url,)


def test_a_stream_of_a_queue_needs_a_place_for_its_spool():
    with pytest.raises(OptionError, match="'spoolDir' is missing"):
        read_options(QUEUE, streaming=True)
    assert read_options({**QUEUE, "ackMode": "commit"}, streaming=True).spool_folder is None
    assert read_options(STREAM, streaming=True).streams == ("events",)


def test_a_wrong_password_is_not_shown():
    with pytest.raises(OptionError) as caught:
        read_options({"amqp.url": "amqp://me:s3cret@localhost,", "queue": "orders"})
    assert "amqp.url" in str(caught.value) and "s3cret" not in str(caught.value)


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


def test_a_missing_url_of_a_reader_with_options_says_nothing_of_tables():
    with pytest.raises(OptionError, match=r"'amqp.url' is missing.*:port/$"):
        read_options({"queue": "orders"})


def test_what_spark_says_to_itself_is_passed_over():
    assert write_options({"amqp.url": URL, "checkpointLocation": "/x", "queryName": "q"}).exchange is None
