"""Contents inside contents: written, gathered, and what comes where it was not due."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from fakeamqp.protocols.amqp_0_9.codec.constants import FRAME_BODY, FRAME_HEADER
from fakeamqp.protocols.amqp_0_9.codec.contents import (
    MAX_DEPTH,
    PROPERTIES,
    Content,
    ContentAssembler,
    ContentHeader,
    content_frames,
    decode_header,
    encode_header,
)
from fakeamqp.protocols.amqp_0_9.codec.properties import (
    BasicProperties,
    FileProperties,
    StreamProperties,
    TunnelProperties,
)
from fakeamqp.protocols.amqp_0_9_1.codec import frames
from fakeamqp.protocols.base.codec import FieldError, FrameError, WireError

rule = pytest.mark.rule
NONE = b"\0\0"


def written(content: Content, limit: int = 4096) -> list[tuple[int, bytes]]:
    """Type and payload of each frame."""
    found = content_frames(5, content.class_id, content.properties, content.body, limit, content.children)
    for octets in found:
        _, channel, size = frames.FRAME_HEADER.unpack_from(octets)
        assert (channel, size, octets[-1]) == (5, len(octets) - 8, frames.FRAME_END)
    return [(octets[0], octets[7:-1]) for octets in found]


def feed(gathering: ContentAssembler, kind: int, payload: bytes) -> Content | None:
    return gathering.add_header(payload) if kind == FRAME_HEADER else gathering.add_body(payload)


def contents() -> st.SearchStrategy[Content]:
    def around(children: st.SearchStrategy[tuple]) -> st.SearchStrategy[Content]:
        class_ids = st.sampled_from(sorted(PROPERTIES))
        return st.builds(Content, class_ids, st.just(NONE), st.binary(max_size=9), children)

    def outside(inner: st.SearchStrategy[Content]) -> st.SearchStrategy[Content]:
        return around(st.lists(inner, max_size=3).map(tuple))

    return st.recursive(around(st.just(())), outside, max_leaves=6)


@rule("0-9/content/header-layout")
@rule("0-9/content/weight")
def test_content_header_with_a_weight_is_encoded_octet_for_octet() -> None:
    octets = bytes.fromhex("003c 0102 0000010000000000 8000 0161")
    header = ContentHeader(60, 258, 2**40, b"\x80\x00\x01a")
    assert encode_header(header) == octets
    assert decode_header(octets) == header
    assert frames.CONTENT_HEADER.unpack_from(octets) == header[:3]


@rule("0-9/content/max-weight")
def test_a_weight_has_16_bits() -> None:
    assert encode_header(ContentHeader(60, 65535, 0, NONE))[2:4] == b"\xff\xff"
    for header in ((60, 65536, 0), (65536, 0, 0), (60, 0, 2**64), (60, -1, 0), (60, None, 0)):
        with pytest.raises(FieldError, match="out of range"):
            encode_header(ContentHeader(*header, NONE))


def test_a_header_cut_at_any_octet_is_a_frame_error() -> None:
    octets = encode_header(ContentHeader(60, 0, 1, NONE))
    for cut in range(len(octets)):
        with pytest.raises(FrameError, match=f"at least 14 bytes, got {cut}"):
            decode_header(octets[:cut])


def test_each_class_with_contents_has_its_properties() -> None:
    assert {
        60: BasicProperties,
        70: FileProperties,
        80: StreamProperties,
        110: TunnelProperties,
    } == PROPERTIES


@rule("0-9/content/child-contents")
def test_child_contents_are_written_between_header_and_body() -> None:
    grandchild = Content(60, NONE, b"c")
    parent = Content(70, NONE, b"ab", (Content(60, NONE, b"", (grandchild,)), Content(80, NONE, b"d")))
    assert written(parent, limit=1) == [
        (FRAME_HEADER, encode_header(ContentHeader(70, 2, 2, NONE))),
        (FRAME_HEADER, encode_header(ContentHeader(60, 1, 0, NONE))),
        (FRAME_HEADER, encode_header(ContentHeader(60, 0, 1, NONE))),
        (FRAME_BODY, b"c"),
        (FRAME_HEADER, encode_header(ContentHeader(80, 0, 1, NONE))),
        (FRAME_BODY, b"d"),
        (FRAME_BODY, b"a"),
        (FRAME_BODY, b"b"),
    ]


def test_content_without_children_has_the_frames_of_0_9_1() -> None:
    assert content_frames(3, 60, NONE, b"abc", 2) == frames.content_frames(3, 60, NONE, b"abc", 2)


@rule("0-9/content/child-contents")
@given(contents(), st.integers(1, 12))
def test_written_content_is_assembled_with_its_last_frame(content: Content, limit: int) -> None:
    gathering = ContentAssembler()
    *others, last = written(content, limit)
    assert [feed(gathering, *each) for each in others] == [None] * len(others)
    assert feed(gathering, *last) == content


def test_assembler_shows_the_header_of_the_outermost_content() -> None:
    gathering = ContentAssembler()
    assert gathering.header is None
    gathering.add_header(encode_header(ContentHeader(60, 1, 7, NONE)))
    gathering.add_header(encode_header(ContentHeader(70, 0, 9, NONE)))
    assert gathering.header == ContentHeader(60, 1, 7, NONE)


def test_empty_body_frame_does_not_end_a_content() -> None:
    gathering = ContentAssembler()
    gathering.add_header(encode_header(ContentHeader(60, 0, 1, NONE)))
    assert gathering.add_body(b"") is None
    assert gathering.add_body(b"x") == Content(60, NONE, b"x")


@pytest.mark.parametrize(
    ("headers", "kind", "payload", "match"),
    [
        ([], FRAME_BODY, b"x", "a body came where a content header was due"),
        ([(1, 1)], FRAME_BODY, b"x", "a body came where a content header was due"),
        ([(0, 3)], FRAME_HEADER, (0, 3), "where 3 bytes of a body were due"),
        ([(0, 3)], FRAME_BODY, b"12345", "2 bytes came beyond the 3 that were announced"),
        ([(1, 3), (0, 1)], FRAME_BODY, b"12", "1 bytes came beyond the 1 that were announced"),
        ([(1, 3), (0, 0)], FRAME_HEADER, (0, 3), "where 3 bytes of a body were due"),
    ],
)
def test_unexpected_header_or_body_frame_is_a_frame_error(
    headers: list, kind: int, payload: object, match: str
) -> None:
    gathering = ContentAssembler()
    for weight, size in headers:
        gathering.add_header(encode_header(ContentHeader(60, weight, size, NONE)))
    if kind == FRAME_HEADER:
        payload = encode_header(ContentHeader(60, *payload, NONE))
    with pytest.raises(FrameError, match=match):
        feed(gathering, kind, payload)


def nested(depth: int) -> Content:
    content = Content(60, NONE, b"x")
    for _ in range(depth - 1):
        content = Content(60, NONE, b"x", (content,))
    return content


def test_contents_nested_deeper_than_the_limit_are_refused() -> None:
    deepest = nested(MAX_DEPTH)
    gathering = ContentAssembler()
    *_, whole = [feed(gathering, *each) for each in written(deepest)]
    assert whole == deepest
    with pytest.raises(FieldError, match="deeper than 100"):
        written(nested(MAX_DEPTH + 1))
    gathering = ContentAssembler()
    header = encode_header(ContentHeader(60, 1, 0, NONE))
    for _ in range(MAX_DEPTH):
        gathering.add_header(header)
    with pytest.raises(FieldError, match="deeper than 100"):
        gathering.add_header(header)


@given(st.lists(st.tuples(st.sampled_from((FRAME_HEADER, FRAME_BODY)), st.binary(max_size=20)), max_size=8))
def test_any_content_frames_give_a_content_or_a_wire_error(given_frames: list[tuple[int, bytes]]) -> None:
    gathering = ContentAssembler()
    for kind, payload in given_frames:
        try:
            found = feed(gathering, kind, payload)
        except WireError:
            return
        if found is not None:
            return
