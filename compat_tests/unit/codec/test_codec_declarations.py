"""Every declaration of 0-9-1 and 0-9 equals the protocol facts in spec/."""

from __future__ import annotations

import keyword
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from fakeamqp.protocols.amqp_0_9.codec import version_0_8
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[3]


class Protocol(NamedTuple):
    """A protocol's facts and the package that declares them.

    `renamed` maps class (or "") and name to the name in Python, `methods` counts them.
    """

    facts: dict
    package: str
    renamed: dict[tuple[str, str], str]
    methods: int

    def module(self, name: str) -> ModuleType:
        return import_module(f"{self.package}.{name}")

    def spelled(self, owner: str, name: str) -> str:
        """The name of a field or property in Python."""
        name = self.renamed.get((owner, name), self.renamed.get(("", name), name)).replace("-", "_")
        return f"{name}_" if keyword.iskeyword(name) else name

    def layout(self, owner: str, fields: list[dict]) -> tuple[tuple[str, str], ...]:
        return tuple((self.spelled(owner, field["name"]), field["type"]) for field in fields)


def facts_of(name: str) -> dict:
    return tomllib.loads((ROOT / "spec" / f"{name}.toml").read_text(encoding="utf-8"))


PROTOCOLS = {
    "0-9-1": Protocol(
        facts_of("amqp-0-9-1"),
        "fakeamqp.protocols.amqp_0_9_1.codec",
        {("", "nowait"): "no-wait", ("basic", "reserved"): "cluster-id"},
        66,
    ),
    "0-9": Protocol(
        facts_of("amqp-0-9"),
        "fakeamqp.protocols.amqp_0_9.codec",
        {("", "nowait"): "no-wait", ("message", "bytes"): "octets"},
        105,
    ),
}
NOTES = {
    "RabbitMQ's extension": ("extension", "rabbitmq"),
    "Qpid's extension": ("extension", "qpid"),
    "deprecated": ("deprecated", True),
}
each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)


def constant(name: str) -> str:
    return name.replace("-", "_").upper()


def camel(owner: str, name: str) -> str:
    return "".join(part.capitalize() for part in (owner, *name.split("-")))


@each_protocol
def test_constants_are_those_of_the_facts(protocol: Protocol) -> None:
    facts = protocol.facts
    constants = facts["constants"]
    expected = {
        "PROTOCOL_HEADER": bytes(facts["protocol"]["header_octets"]),
        "VERSION_MAJOR": facts["protocol"]["start_version_major"],
        "VERSION_MINOR": facts["protocol"]["start_version_minor"],
        "PORT": facts["protocol"]["port"],
        **{constant(each["name"]): each["value"] for each in constants},
        "REPLY_NAMES": {
            each["value"]: constant(each["name"])
            for each in constants
            if "class" in each or each["name"] == "reply-success"
        },
        "SOFT_ERRORS": {each["value"] for each in constants if each.get("class") == "soft-error"},
        "HARD_ERRORS": {each["value"] for each in constants if each.get("class") == "hard-error"},
        **{f"CLASS_{constant(owner['name'])}": owner["id"] for owner in facts["classes"]},
        "CLASS_NAMES": {owner["id"]: owner["name"] for owner in facts["classes"]},
    }
    declared = {name: value for name, value in vars(protocol.module("constants")).items() if name in expected}
    assert declared == {name: expected[name] for name in declared}
    assert {"PROTOCOL_HEADER", "REPLY_NAMES", "SOFT_ERRORS", "HARD_ERRORS"} <= declared.keys()


@each_protocol
def test_methods_are_those_of_the_facts(protocol: Protocol) -> None:
    module = protocol.module("methods")
    expected = {}
    for owner in protocol.facts["classes"]:
        for fact in owner["methods"]:
            method = getattr(module, camel(owner["name"], fact["name"]))
            expected[owner["id"] << 16 | fact["id"]] = method
            assert f"{owner['name']}.{fact['name']}" == method.NAME
            assert (owner["id"], fact["id"]) == (method.CLASS_ID, method.METHOD_ID)
            assert owner["id"] << 16 | fact["id"] == method.INDEX
            assert method.SYNCHRONOUS is fact["synchronous"]
            assert method.HAS_CONTENT is fact.get("content", False)
            assert tuple(fact["received_by"]) == method.RECEIVED_BY
            assert tuple(f"{owner['name']}.{r}" for r in fact.get("responses", [])) == method.RESPONSES
            assert protocol.layout(owner["name"], fact["fields"]) == method.LAYOUT
            for note, (key, value) in NOTES.items():
                assert (note.lower() in method.__doc__.lower()) is (fact.get(key) == value)
    assert expected == module.METHODS
    assert len(expected) == protocol.methods


@each_protocol
def test_every_field_has_the_default_of_its_type(protocol: Protocol) -> None:
    defaults = {"bit": False, "shortstr": "", "longstr": b"", "table": {}, "content": (b"", False)}
    for method in protocol.module("methods").METHODS.values():
        value = method()
        for name, kind in method.LAYOUT:
            assert getattr(value, name) == defaults.get(kind, 0)
            assert type(getattr(value, name)) is not bool or kind == "bit"


@each_protocol
def test_properties_are_those_of_the_facts(protocol: Protocol) -> None:
    module = protocol.module("properties")
    expected = {}
    for owner in protocol.facts["classes"]:
        if "properties" in owner:
            properties = getattr(module, camel(owner["name"], "properties"))
            expected[properties.__name__] = properties
            assert f"{owner['name']} properties" == properties.NAME
            assert owner["id"] == properties.CLASS_ID
            assert protocol.layout(owner["name"], owner["properties"]) == properties.LAYOUT
            assert all(getattr(properties(), name) is None for name, _ in properties.LAYOUT)
    declared = {
        name: kind
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, Properties) and "CLASS_ID" in vars(kind)
    }
    assert declared == expected


def test_the_methods_of_0_8_keep_all_but_the_number_and_the_version() -> None:
    methods = PROTOCOLS["0-9"].module("methods").METHODS
    assert version_0_8.METHODS.keys() == version_0_8.SAME_IN_0_9.keys()
    for index, method in version_0_8.METHODS.items():
        same: type[Method] = methods[version_0_8.SAME_IN_0_9[index]]
        assert index == method.INDEX == method.CLASS_ID << 16 | method.METHOD_ID
        assert issubclass(method, same) or not method.LAYOUT
        assert getattr(version_0_8, method.__name__, method) is method
        for fact in ("NAME", "CLASS_ID", "SYNCHRONOUS", "HAS_CONTENT", "RECEIVED_BY", "RESPONSES"):
            assert getattr(method, fact) == getattr(same, fact)
        assert (() if method.NAME == "channel.open-ok" else same.LAYOUT) == method.LAYOUT
    otherwise = {
        method.NAME
        for index, method in version_0_8.METHODS.items()
        if index != version_0_8.SAME_IN_0_9[index]
    }
    assert otherwise == {"connection.redirect", "connection.close", "connection.close-ok"}


def test_the_shared_codec_imports_no_protocol() -> None:
    code = (
        "import sys; import fakeamqp.protocols.base.codec;"
        "print(*[name for name in sys.modules if name.endswith(('.amqp_0_9', '.amqp_0_9_1', '.amqp_0_10'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# --- the codecs load no module that they do not need ---------------------------------------------------


HEAVY = "{'asyncio', 'socket', 'ssl', 'threading', 'datetime', 'uuid', 'logging', 'typing_extensions'}"
MODULES = {
    "0-9-1": "fakeamqp.protocols.amqp_0_9_1.codec",
    "0-9": "fakeamqp.protocols.amqp_0_9.codec",
    "0-10": "fakeamqp.protocols.amqp_0_10.properties, fakeamqp.protocols.amqp_0_10.codec.commands",
}


@pytest.mark.parametrize("modules", MODULES.values(), ids=MODULES)
def test_importing_a_codec_loads_no_heavy_modules(modules: str) -> None:
    code = (
        f"import sys; before = set(sys.modules); import {modules};"
        f"print(*sorted({HEAVY} & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
