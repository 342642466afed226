"""The payloads of request and response frames of 0-9: numbers, then a method.

Sources: 0-9/request/layout, 0-9/response/layout. In the specification the figure of a request has four
reserved bytes and the grammar has none; peers implement either. The first two bytes after the numbers
distinguish the forms: without reserved bytes they are the class id, which is never 0. An answer should use
the form of the request.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_REQUEST, FRAME_RESPONSE
from fakeamqp.protocols.base.codec import FieldError, FrameError

_request = struct.Struct(">QQ")
_response = struct.Struct(">QQI")
_IDS = 4
"""Bytes of class and method id: no method has fewer."""
_RESERVED = bytes(4)


class Request(NamedTuple):
    """The payload of a request frame.

    Attributes:
        request_id: 1 for the first of a channel and direction, then one more each.
        response_mark: the sender has processed the responses up to this number.
        method: the payload of the method.
        reserved: True when four reserved bytes come before the method.
    """

    request_id: int
    response_mark: int
    method: bytes
    reserved: bool = True


class Response(NamedTuple):
    """The payload of a response frame.

    Attributes:
        response_id: 1 for the first of a channel and direction, then one more each.
        request_id: the first request that it answers.
        batch_offset: the number of further requests that it answers.
        method: the payload of the method.
    """

    response_id: int
    request_id: int
    batch_offset: int
    method: bytes


def decode_request(payload: bytes) -> Request:
    """Read a request in either form. Raises FrameError if it is too short."""
    if len(payload) < _request.size + _IDS:
        raise FrameError(f"a request has at least {_request.size + _IDS} bytes, got {len(payload)}")
    request_id, response_mark = _request.unpack_from(payload)
    start = _request.size
    reserved = payload[start : start + 2] == b"\0\0"
    if reserved:
        start += len(_RESERVED)
        if len(payload) < start + _IDS:
            raise FrameError(f"a request with reserved bytes has at least {start + _IDS}, got {len(payload)}")
    return Request(request_id, response_mark, payload[start:], reserved)


def encode_request(request: Request) -> bytes:
    """The payload of a request frame. Raises FieldError if a number does not fit its field."""
    try:
        numbers = _request.pack(request.request_id, request.response_mark)
    except struct.error:
        raise FieldError(f"{request!r:.200}: number out of range") from None
    return b"".join((numbers, _RESERVED if request.reserved else b"", request.method))


def decode_response(payload: bytes) -> Response:
    """Read a response. Raises FrameError if it is too short."""
    if len(payload) < _response.size + _IDS:
        raise FrameError(f"a response has at least {_response.size + _IDS} bytes, got {len(payload)}")
    response_id, request_id, batch_offset = _response.unpack_from(payload)
    return Response(response_id, request_id, batch_offset, payload[_response.size :])


def encode_response(response: Response) -> bytes:
    """The payload of a response frame. Raises FieldError if a number does not fit its field."""
    response_id, request_id, batch_offset, method = response
    try:
        return _response.pack(response_id, request_id, batch_offset) + method
    except struct.error:
        raise FieldError(f"{response!r:.200}: number out of range") from None


def decode_numbers(frame_type: int, payload: bytes) -> Request | Response | None:
    """Read a request or a response; None for other frames, and if the payload is too short."""
    try:
        if frame_type == FRAME_REQUEST:
            return decode_request(payload)
        if frame_type == FRAME_RESPONSE:
            return decode_response(payload)
    except FrameError:
        pass
    return None


def encode_numbers(numbers: Request | Response, method: bytes) -> tuple[int, bytes]:
    """Type and payload of a frame with these numbers and this method."""
    if isinstance(numbers, Request):
        return FRAME_REQUEST, encode_request(numbers._replace(method=method))
    return FRAME_RESPONSE, encode_response(numbers._replace(method=method))
