"""Definitions of the protocol in the form that the client reads: XML as its authors published it.

An equal file is written from what the project knows of AMQP 0-9, so that nobody has to install the published
one, which Debian's package `amqp-specs` has.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["PUBLISHED", "PUBLISHED_0_8", "write"]

KNOWN = Path(__file__).parents[3] / "spec" / "amqp-0-9.toml"

PUBLISHED = Path("/usr/share/amqp/specs/0-9/amqp0-9.stripped.xml")
PUBLISHED_0_8 = Path("/usr/share/amqp/specs/0-8/amqp0-8.stripped.xml")
"""Where Debian's package has the published files."""


def write(path: Path) -> None:
    """Write the definitions of AMQP 0-9.

    What brokers have added is left out, and the frames that only the prose knows: the published file has
    neither.
    """
    known = tomllib.loads(KNOWN.read_text("utf-8"))
    version = known["protocol"]
    root = Element("amqp", {name: str(version[name]) for name in ("major", "minor", "port")})
    for constant in known["constants"]:
        if not constant.get("wip"):
            attributes = {"name": constant["name"], "value": str(constant["value"])}
            SubElement(root, "constant", attributes | _given(constant, "class"))
    for name, wire_type in known["domains"].items():
        SubElement(root, "domain", {"name": name, "type": wire_type})
    for each in known["classes"]:
        of_class = SubElement(root, "class", _named(each) | _given(each, "handler"))
        _add_fields(of_class, each.get("properties", ()))
        for method in each["methods"]:
            if "extension" not in method:
                _add_method(of_class, method)
    indent(root)
    ElementTree(root).write(path, "utf-8", xml_declaration=True)


def _add_method(of_class: Element, method: dict[str, Any]) -> None:
    flags = {name: "1" for name in ("synchronous", "content") if method.get(name)}
    element = SubElement(of_class, "method", _named(method) | flags)
    element.text = "\n"  # The client wants some text there.
    for name in method.get("responses", ()):
        SubElement(element, "response", {"name": name})
    _add_fields(element, method["fields"])


def _add_fields(element: Element, fields: Any) -> None:
    for field in fields:
        SubElement(element, "field", {"name": field["name"], "domain": field.get("domain", field["type"])})


def _named(each: dict[str, Any]) -> dict[str, str]:
    return {"name": each["name"], "index": str(each["id"])}


def _given(each: dict[str, Any], name: str) -> dict[str, str]:
    return {name: each[name]} if name in each else {}
