"""The types of frames."""

from __future__ import annotations

import pytest

from fakeamqp.protocols.amqp_0_9.codec import constants
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_NAMES, FRAME_TYPES, OUT_OF_BAND

rule = pytest.mark.rule


def test_ten_types_from_1_on() -> None:
    assert set(range(1, 11)) == FRAME_TYPES
    assert list(FRAME_NAMES.values()) == [
        "method",
        "header",
        "body",
        "oob-method",
        "oob-header",
        "oob-body",
        "trace",
        "heartbeat",
        "request",
        "response",
    ]
    assert {FRAME_NAMES[kind] for kind in OUT_OF_BAND} == {"oob-method", "oob-header", "oob-body"}


def test_there_is_no_505() -> None:
    assert 505 not in constants.REPLY_NAMES
    assert set(constants.REPLY_NAMES) == constants.SOFT_ERRORS | constants.HARD_ERRORS | {200}


def test_the_protocol_header() -> None:
    assert constants.PROTOCOL_HEADER == b"AMQP\x01\x01\x00\x09"
