"""Values for fields of every wire type, and whole methods and properties of them."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from fakeamqp.protocols.amqp_0_9.codec import (
    METHODS as METHODS_0_9,
    FileProperties,
    StreamProperties,
    TunnelProperties,
    version_0_8,
)
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec import METHODS, BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp

#: Every class of methods, each once.
ALL_METHODS = list(dict.fromkeys((*METHODS.values(), *METHODS_0_9.values(), *version_0_8.METHODS.values())))
ALL_PROPERTIES = [BasicProperties, FileProperties, StreamProperties, TunnelProperties]
BITS = {"octet": 8, "short": 16, "long": 32, "longlong": 64, "timestamp": 64}


def escaped(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")


def short_texts():
    """Mostly short, sometimes as long as can be, and not always UTF-8."""
    return st.one_of(
        st.text(max_size=12),
        st.binary(max_size=12).map(escaped),
        st.sampled_from(["x" * 255, "é" * 127, escaped(b"\xff" * 255)]),
    )


def decimals():
    mantissas = st.integers(0, 2**32 - 1)
    return st.builds(lambda mantissa, scale: Decimal(f"{mantissa}E-{scale}"), mantissas, st.integers(0, 255))


def scalars():
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.text(max_size=20),
        st.binary(max_size=20).map(escaped),
        st.binary(max_size=20),
        decimals(),
        st.integers(0, 2**64 - 1).map(Timestamp),
    )


def values():
    return st.recursive(
        scalars(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(short_texts(), inner, max_size=3),
        max_leaves=5,
    )


def tables():
    return st.dictionaries(short_texts(), values(), max_size=3)


def field_values(kind: str):
    if kind in BITS:
        return st.integers(0, 2 ** BITS[kind] - 1)
    return {
        "bit": st.booleans(),
        "shortstr": short_texts(),
        "longstr": st.binary(max_size=30) | st.just(bytes(300)),
        "table": tables(),
        "content": st.builds(Body, st.binary(max_size=30), st.booleans()),
    }[kind]


@st.composite
def methods(draw):
    method = draw(st.sampled_from(ALL_METHODS))
    return method(**{name: draw(field_values(kind)) for name, kind in method.LAYOUT})


@st.composite
def properties(draw):
    kind_of_content = draw(st.sampled_from(ALL_PROPERTIES))
    values = {name: draw(st.none() | field_values(kind)) for name, kind in kind_of_content.LAYOUT}
    return kind_of_content(**values)
