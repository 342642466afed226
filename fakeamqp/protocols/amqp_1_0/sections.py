"""The sections of a message as dictionaries, as inspection shows them; see `from_sections`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from fakeamqp.protocols.amqp_1_0.codec.types import ULong, read_value

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_1_0.messages import SectionProperties

BODIES: Final = {"data": 0x75, "sequence": 0x76, "value": 0x77}
MAPS: Final = {"annotations": 0x72, "application_properties": 0x74, "footer": 0x78}
HEADER: Final = ("durable", "priority", "ttl")


def sections_of(properties: SectionProperties, body: bytes) -> dict[str, Any]:
    """The sections that a message has."""
    header = {name: getattr(properties, name) for name in HEADER}
    fields = {name: value for name, value in vars(properties.fields).items() if value is not None}
    found: dict[str, Any] = {
        "header": {name: value for name, value in header.items() if value is not None},
        "annotations": properties.annotations,
        "properties": fields,
        "application_properties": properties.application_properties,
    }
    found = {name: value for name, value in found.items() if value}
    names = {code: name for name, code in (*BODIES.items(), *MAPS.items())}
    octets = properties.bare(body)[len(properties.head) :]
    offset = 0
    while offset < len(octets):
        section, offset = read_value(octets, offset)
        name = names[section.descriptor] if isinstance(section.descriptor, ULong) else section.descriptor
        if name in ("data", "sequence"):
            found.setdefault(name, []).append(section.value)
        else:
            found[str(name)] = section.value
    return found
