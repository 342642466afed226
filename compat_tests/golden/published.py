"""The layouts of methods, commands, controls and structs, read from the published XML definitions.

Debian's package `amqp-specs` has the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

__all__ = ["SOURCES", "SPECS", "Field", "Layout", "Types", "layouts", "types_0_10"]

SPECS = Path("/usr/share/amqp/specs")

#: Protocol -> its files; of records with one name the first counts.
SOURCES = {
    "0-8": (
        "0-8/amqp0-8.stripped.xml",
        "0-8-qpid/amqp0-8-qpid.stripped.xml",
        "0-9-qpid/amqp0-9-qpid.stripped.xml",
    ),
    "0-9": ("0-9/amqp0-9.stripped.xml", "0-9-qpid/amqp0-9-qpid.stripped.xml"),
    "0-9-1": (
        "0-9-1-rabbit/amqp0-9-1.stripped.extended.xml",
        "0-9-1/amqp0-9-1.stripped.xml",
        "supplement",
        "0-9/amqp0-9.stripped.xml",
    ),
    # The published file has lost size and code of dtx.xid, which the published text has.
    "0-10": ("0-10-qpid/amqp.0-10-qpid-errata.stripped.xml", "0-10/amqp.0-10.stripped.xml"),
}

#: What of the last file of a protocol counts: methods that peers have taken from another protocol.
_KEPT = {
    ("0-9-1", 3): ("access.request", "access.request-ok"),
    ("0-8", 2): ("queue.unbind", "queue.unbind-ok", "basic.recover-sync"),
}

#: RabbitMQ's additions to 0-9-1 that Debian's file does not have yet; RabbitMQ's site publishes them.
SUPPLEMENT = """
<amqp>
  <class name="connection" index="10">
    <method name="blocked" index="60"><field name="reason" domain="shortstr"/></method>
    <method name="unblocked" index="61"/>
    <method name="update-secret" index="70">
      <field name="new-secret" domain="longstr"/>
      <field name="reason" domain="shortstr"/>
    </method>
    <method name="update-secret-ok" index="71"/>
  </class>
</amqp>
"""


class Field(NamedTuple):
    """A field: its wire type, and the values that its domain has, if it lists them."""

    name: str
    type: str
    choices: tuple[int, ...] = ()


class Layout(NamedTuple):
    """A record: `kind` is method, properties, control, command or struct.

    `major` and `minor` are the numbers of the class and of the record, None where it has none; `size` is the
    width of a struct's size, `pack` the octets of its flags.
    """

    kind: str
    name: str
    major: int | None
    minor: int | None
    fields: tuple[Field, ...]
    size: int = 0
    pack: int = 0


Types = dict[str, tuple[int | None, int, bool]]
"""Name of a type of 0-10 -> its code, its width, and whether that is the width of a size in front of it."""


def _root(source: str) -> Element:
    if source == "supplement":
        return ElementTree.fromstring(SUPPLEMENT)
    root = ElementTree.parse(SPECS / source).getroot()
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def layouts(protocol: str) -> list[Layout]:
    """All records of a protocol."""
    read = _of_0_10 if protocol == "0-10" else _of_family
    found: dict[tuple[str, str], Layout] = {}
    for number, source in enumerate(SOURCES[protocol]):
        for each in read(_root(source)):
            if each.name in _KEPT.get((protocol, number), (each.name,)):
                found.setdefault((each.kind, each.name), each)
    return list(found.values())


# --- 0-8, 0-9, 0-9-1 ---------------------------------------------------------------------------------------


def _spelled(name: str | None) -> str:
    """The definitions of 0-8 have blanks in names."""
    return (name or "").replace(" ", "-")


def _of_family(root: Element) -> Iterator[Layout]:
    domains = {_spelled(each.get("name")): each.get("type", "") for each in root.iter("domain")}

    def fields(owner: Element) -> tuple[Field, ...]:
        found = []
        for each in owner.findall("field"):
            kind = _spelled(each.get("domain") or each.get("type"))
            while domains.get(kind, kind) != kind:
                kind = domains[kind]
            found.append(Field(_spelled(each.get("name")), kind))
        return tuple(found)

    for of_class in root.findall("class"):
        name, index = of_class.get("name", ""), int(of_class.get("index", ""))
        if of_class.findall("field"):
            yield Layout("properties", name, index, None, fields(of_class))
        for method in of_class.findall("method"):
            minor = int(method.get("index", ""))
            yield Layout("method", f"{name}.{method.get('name')}", index, minor, fields(method))


# --- 0-10 --------------------------------------------------------------------------------------------------


def types_0_10() -> Types:
    """The table of types."""
    found: Types = {}
    for each in _root(SOURCES["0-10"][1]).findall("type"):
        code, fixed = each.get("code"), each.get("fixed-width")
        width = int(fixed if fixed is not None else each.get("variable-width", ""))
        found[each.get("name", "")] = (None if code is None else int(code, 0), width, fixed is None)
    return found


def _of_0_10(root: Element) -> Iterator[Layout]:
    domains: dict[str, tuple[str, tuple[int, ...]]] = {}
    structs: set[str] = set()
    for owner in (root, *root.findall("class")):
        prefix = f"{owner.get('name')}." if owner.tag == "class" else ""
        for each in owner.findall("domain"):
            choices = tuple(int(choice.get("value", "")) for choice in each.iter("choice"))
            domains[prefix + each.get("name", "")] = (each.get("type", ""), choices)
        structs |= {prefix + each.get("name", "") for each in owner.iter("struct")}

    def field(of_class: str, each: Element) -> Field:
        kind, choices = each.get("type", ""), ()
        while True:
            known = next(
                (name for name in (f"{of_class}.{kind}", kind) if name in (*domains, *structs)), None
            )
            if known == "session.command-fragments":
                kind = "array:session.command-fragment"
            if known is None or known == "session.command-fragments":
                return Field(each.get("name", ""), kind, choices)
            if known in structs:
                return Field(each.get("name", ""), f"struct:{known}", choices)
            kind, listed = domains[known]
            # What a domain with numbers for common cases allows beside them is all numbers: message.priority.
            choices = choices or listed

    for of_class in root.findall("class"):
        name, major = of_class.get("name", ""), int(of_class.get("code", ""), 0)
        for kind in ("control", "command", "struct"):
            for each in of_class.iter(kind):
                code = each.get("code")
                yield Layout(
                    kind,
                    f"{name}.{each.get('name')}",
                    major if code else None,
                    int(code, 0) if code else None,
                    tuple(field(name, found) for found in each.findall("field")),
                    int(each.get("size", "0"), 0),
                    int(each.get("pack", "2"), 0),
                )
