"""Message id, stream offset and digests of a message, from its encoded properties."""

from __future__ import annotations

import struct

from hypothesis import given, settings, strategies as some

from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.rows import deliveries
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.spark.rows.identity import (
    content_digest,
    message_id_of,
    published_digest,
    stream_offset,
)

BROKEN = b"\x20\x00\x00\x00\x00\x09\x0fx-stream-offsetz"


def encoded(**properties):
    return BasicProperties(**properties).encode()


def test_message_id_is_the_text_of_the_column():
    with cases() as case:
        for properties, expected in [
            (encoded(message_id="m1", headers={"a": 1}), "m1"),
            (encoded(message_id=""), ""),
            (encoded(message_id="a\udcffb"), "a\ufffdb"),
            (encoded(headers={"message_id": "m"}), None),
            (b"\x00\x80\x05m", None),
            (b"", None),
        ]:
            with case(properties):
                assert message_id_of(properties) == expected


def test_stream_offset_is_taken_out_of_the_properties():
    published = {"content_type": "text/plain", "message_id": "m", "timestamp": 7}
    with cases() as case:
        for headers in (None, {"a": 1}, {"a": 1, "z": {"x-stream-offset": 3}}):
            for offset in (0, 17, 2**40):
                with case(headers, offset):
                    delivered = encoded(**published, headers={**(headers or {}), "x-stream-offset": offset})
                    assert stream_offset(delivered) == (offset, encoded(**published, headers=headers))


def test_properties_without_a_stream_offset_stay_as_they_are():
    with cases() as case:
        for properties in [
            encoded(message_id="x-stream-offset"),
            encoded(headers={"a": {"x-stream-offset": 3}}),
            encoded(headers={"x-stream-offset": "copied by an app"}),
            BROKEN,
            b"\x20",
        ]:
            with case(properties):
                assert stream_offset(properties) == (None, properties)


def test_digest_is_the_same_in_each_delivery():
    """Quorum queues add counts to the headers, and a table if there is none."""
    counts = [{}, {"x-delivery-count": 1}, {"x-acquired-count": 2**40}]
    counts.append({"x-acquired-count": 2, "x-delivery-count": 1})
    with cases() as case:
        for headers in (None, {}, {"a": 1, "z": [True]}):
            for properties in ({}, {"content_type": "a/b", "content_encoding": "gzip", "timestamp": 7}):
                first = content_digest(encoded(**properties, headers=headers), b"body")
                for added in counts:
                    for merged in ({**(headers or {}), **added}, {**added, **(headers or {})}):
                        with case(headers, properties, list(merged)):
                            again = encoded(**properties, headers=merged)
                            assert content_digest(again, b"body") == first


def test_digest_is_the_same_whatever_a_quorum_queue_adds_to_the_headers(broker):
    deliveries.check(broker.url)


def test_digest_of_each_other_message_differs():
    digests = {
        content_digest(properties, body)
        for properties, body in [
            (encoded(), b""),
            (encoded(), b"a"),
            (encoded(content_type="a"), b""),
            (encoded(content_encoding="a"), b""),
            (encoded(message_id="m"), b""),
            (encoded(headers={"a": 1}), b""),
            (encoded(headers={"a": 2}), b""),
            (encoded(headers={"a": {"x-delivery-count": 1}}), b""),
            (encoded(headers={"a": {"x-delivery-count": 2}}), b""),
            (BROKEN, b""),
            (b"", b""),
        ]
    }
    assert len(digests) == 11
    assert {len(digest) for digest in digests} == {12}


def test_published_digest_is_that_of_earlier_checkpoints():
    with cases() as case:
        for properties, digest in [
            (encoded(), "1206062ffcf46c54"),
            (encoded(message_id="m\udcff", timestamp=7), "664f9bd3be82abbc"),
            (encoded(message_id="m\udcff", timestamp=7, headers={"a": 1}, type="t"), "664f9bd3be82abbc"),
            (encoded(message_id="it's"), "3991343c74a6fdd4"),
            (b"", "1206062ffcf46c54"),
        ]:
            with case(properties):
                assert published_digest(properties, b"body") == digest


@settings(deadline=None)
@given(octets=some.binary(max_size=60))
def test_no_property_list_is_an_error(octets):
    table = b"\x20\x00" + struct.pack(">I", len(octets)) + octets
    names = b"\x10x-delivery-count\x10x-acquired-count\x0fx-stream-offset"
    for properties in (
        octets,
        b"\x20\x00" + table,
        b"\x20\x00" + table + names,
        b"\xff\xfc" + octets + names,
    ):
        assert len(content_digest(properties, b"")) == 12
        assert message_id_of(properties) is None or isinstance(message_id_of(properties), str)
        assert stream_offset(properties)[0] is None or len(stream_offset(properties)[1]) < len(properties)
