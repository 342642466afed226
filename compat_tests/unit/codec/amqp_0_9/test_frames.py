"""The types of frames."""

from __future__ import annotations

import pytest

from fakeamqp.protocols.amqp_0_9.codec import constants
from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_NAMES, FRAME_TYPES, OUT_OF_BAND

rule = pytest.mark.rule


def test_frame_types_are_1_to_10_with_their_names() -> None:
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


def test_reply_code_505_does_not_exist_in_0_9() -> None:
    assert 505 not in constants.REPLY_NAMES
    assert set(constants.REPLY_NAMES) == constants.SOFT_ERRORS | constants.HARD_ERRORS | {200}


def test_protocol_header_of_0_9_has_known_octets() -> None:
    assert constants.PROTOCOL_HEADER == b"AMQP\x01\x01\x00\x09"
