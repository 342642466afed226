"""Values of every type of AMQP 0-10, and whole structs, controls and commands of them."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from fakeamqp.protocols.amqp_0_10.codec.commands import COMMANDS
from fakeamqp.protocols.amqp_0_10.codec.controls import CONTROLS
from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import NESTED, STRUCTS
from fakeamqp.protocols.amqp_0_10.codec.types import Array
from fakeamqp.timestamps import Timestamp

LATIN = bytes(range(256)).decode("iso8859-15")


def escaped(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")


def texts(longest: int = 255):
    """UTF-8 text, mostly short, sometimes as long as can be, and bytes that are none."""
    return st.one_of(
        st.text(max_size=12),
        st.binary(max_size=12).map(escaped),
        st.sampled_from(["", "x" * longest, "é" * (longest // 2)]),
    )


def unsigned(bits: int):
    return st.integers(0, (1 << bits) - 1)


def signed(bits: int):
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def fixed(size: int):
    return st.binary(min_size=size, max_size=size)


def decimals(bits: int):
    return st.builds(
        lambda mantissa, places: Decimal(f"{mantissa}E-{places}"), signed(bits), st.integers(0, 255)
    )


def utf16(longest: int):
    return st.text(max_size=8) | st.just("\U0001f600" * (longest // 4))


#: type -> its values as a map, list or array has them
SCALARS = {
    **{f"bin{8 * size}": fixed(size) for size in (1, 2, 4, 8, 16, 32, 64, 128, 5, 9)},
    **{f"int{bits}": signed(bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": unsigned(bits) for bits in (8, 16, 32, 64)},
    "boolean": st.booleans(),
    "char": st.sampled_from(LATIN),
    "char-utf32": st.characters(exclude_categories=["Cs"]),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "datetime": unsigned(64).map(Timestamp),
    "uuid": st.uuids(),
    "vbin8": st.binary(max_size=20) | st.just(bytes(255)),
    "vbin16": st.binary(max_size=20) | st.just(bytes(256)),
    "vbin32": st.binary(max_size=20) | st.just(bytes(300)),
    "str8": texts(),
    "str16": texts(300),
    "str8-latin": st.text(LATIN, max_size=20),
    "str16-latin": st.text(LATIN, max_size=300),
    "str8-utf16": utf16(252),
    "str16-utf16": utf16(300),
    "dec32": decimals(32),
    "dec64": decimals(64),
    "void": st.none(),
    "bit": st.just(True),
}


def natural_values():
    """What Python has, without any type of the wire."""
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(1 << 63), (1 << 64) - 1),
        st.floats(allow_nan=False),
        texts(),
        st.binary(max_size=20),
        decimals(64),
        st.uuids(),
        unsigned(64).map(Timestamp),
    )


def arrays():
    names = [name for name in SCALARS if name not in ("void", "bit")]
    return st.sampled_from(names).flatmap(
        lambda name: st.lists(SCALARS[name], max_size=3).map(lambda items: Array.of(name, items))
    )


def values():
    return st.recursive(
        natural_values() | arrays(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3),
        max_leaves=5,
    )


def maps():
    return st.dictionaries(texts(), values(), max_size=3)


def sequence_sets():
    """Sets anywhere on the circle, those that run over its end among them."""
    runs = st.tuples(st.integers(0, 40), st.integers(1, 5))
    starts = st.sampled_from([0, 7, (1 << 31) - 9, (1 << 32) - 20, (1 << 32) - 1])

    def build(start, pieces):
        made = SequenceSet()
        for gap, length in pieces:
            start = (start + gap) % (1 << 32)
            made.add_range(start, (start + length - 1) % (1 << 32))
        return made

    return st.builds(build, starts, st.lists(runs, max_size=4))


def byte_ranges():
    pairs = st.tuples(st.integers(0, 1 << 63), st.integers(0, 99)).map(
        lambda pair: (pair[0], pair[0] + pair[1])
    )
    return st.lists(pairs, max_size=3).map(lambda ranges: ByteRanges.of(*ranges))


def coded_structs():
    return st.sampled_from(sorted(STRUCTS)).flatmap(lambda index: records(STRUCTS[index]))


def field_values(kind: str):
    """Values for a field of that type."""
    if kind in ("map", "array", "struct32", "sequence-set", "byte-ranges"):
        made = {"map": maps, "array": arrays, "struct32": coded_structs}
        made |= {"sequence-set": sequence_sets, "byte-ranges": byte_ranges}
        return made[kind]()
    if kind.startswith("struct:"):
        return st.deferred(lambda: records(NESTED[kind[7:]]))
    if kind.startswith("array:"):
        return st.lists(records(NESTED[kind[6:]], whole=True), max_size=3)
    if kind == "sequence-no":
        return unsigned(32)
    return SCALARS[kind]


@st.composite
def records(draw, kind=None, whole=False):
    """A control, command or struct with any of its fields; `whole`: with all of them."""
    if kind is None:
        kind = draw(st.sampled_from([*CONTROLS.values(), *COMMANDS.values(), *STRUCTS.values()]))
    found = {}
    for name, wire_type in kind.FIELDS:
        if wire_type == "bit":
            found[name] = draw(st.booleans())
        elif whole or draw(st.booleans()):
            domain = kind.DOMAINS.get(name)
            found[name] = draw(st.sampled_from(sorted(domain)) if domain else field_values(wire_type))
    return kind(**found)
