"""Faults in JSON, in the words of `Faults`, `Rule` and `Network`.

A call is a field: its name, and its arguments as an object; as one value, which is its first argument; or
`true` without arguments. So `faults.on("basic.publish", routing_key="orders").delay(2).times(3)` is

    {"on": "basic.publish", "routing_key": "orders", "delay": 2, "times": 3}

and `faults.network.on("billing").cut_after(bytes=1000)` is

    {"network": {"on": "billing", "cut_after": {"bytes": 1000}}}

Actions are applied in the order of the fields. `ACTIONS` and the methods of the three classes are the words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fakeamqp.errors import near_match, nearest
from fakeamqp.faults import Faults
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.network import Network
from fakeamqp.faults.rule import Rule
from fakeamqp.management.control.schemas import Arguments, BadRequest, Schema

Words: TypeAlias = "dict[str, Callable[..., Any]]"


def _methods(owner: type, result: Callable[[str], bool]) -> Words:
    """The public methods of a class whose result has an annotation of some kind."""
    return {
        name: method
        for name, method in vars(owner).items()
        if not name.startswith("_") and callable(method) and result(method.__annotations__.get("return", ""))
    }


ON: Arguments = Arguments.of(Faults.on)
RULE_WORDS: Words = _methods(Rule, lambda result: result == "Self")
"""The triggers and the actions of a rule."""
NETWORK_WORDS: Words = _methods(Network, lambda result: result == "NetworkFault")
LASTING_WORDS: Words = _methods(
    Faults, lambda result: result[:1].isupper() and result not in ("None", "Rule")
)
"""What makes a fault that is neither a rule nor one of the network: alarms, chaos and others."""
_MAKERS = ("on", "network", *LASTING_WORDS)


def add_fault(faults: Faults, said: Mapping[str, Any]) -> Handle:
    """Add a fault, which takes effect at once.

    Raises:
        FaultError: a word is misspelled, or a value is invalid; the text names the nearest match.
        BadRequest: a word has an argument of another type.
    """
    makers = [name for name in said if name in _MAKERS]
    if len(makers) != 1:
        found = f"not {' and '.join(map(repr, makers))}" if makers else f"none of which is in {list(said)}"
        near = [each for name in said for each in nearest(name, _MAKERS)] if not makers else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise FaultError(f"a fault has one of the fields {', '.join(map(repr, _MAKERS))}, {found}{hint}")
    (maker,) = makers
    with faults._context:  # A rule must not act before its conditions and triggers are set.
        if maker == "on":
            return _add_rule(faults, said)
        if maker == "network":
            return _add_network_fault(faults.network, said)
        for name in said:
            if name != maker:
                raise FaultError(
                    f"{maker} is a whole fault: {name!r} is one of its arguments, or another fault"
                )
        return _made(faults, LASTING_WORDS, maker, said[maker])


def _add_rule(faults: Faults, said: Mapping[str, Any]) -> Rule:
    methods = said["on"] if isinstance(said["on"], list) else [said["on"]]
    wanted = {name: value for name, value in said.items() if name != "on" and name not in RULE_WORDS}
    try:
        rule = faults.on(*methods, **ON.read(wanted)[1])
    except FaultError as problem:
        # To the rule, what is no word of an action is a condition.
        unknown = [name for name in wanted if f"no field {name!r}" in str(problem)]
        near = [each for name in unknown for each in nearest(name, RULE_WORDS)]
        if near:
            raise FaultError(f"{problem}; did you mean {near[0]!r}?") from None
        raise
    try:
        for name, value in said.items():
            if name in RULE_WORDS:
                _call(rule, RULE_WORDS, name, value)
    except BaseException:
        rule.optional().remove()
        raise
    return rule


def _add_network_fault(network: Network, said: Mapping[str, Any]) -> Handle:
    words = said["network"]
    if isinstance(words, str):
        words = {words: True}
    if not isinstance(words, dict):
        raise BadRequest("network must be the name of a fault of the network, or an object with one")
    if "on" in words:
        network = network.on(words["on"])
    names = [name for name in words if name != "on"]
    if len(said) > 1 or len(names) != 1:
        raise FaultError(
            f"a fault of the network is an object with one of {', '.join(map(repr, NETWORK_WORDS))}, and "
            '"on" for one connection only, such as {"network": {"on": "billing", "latency": 0.2}}'
        )
    if names[0] not in NETWORK_WORDS:
        raise FaultError(f"network has no fault {names[0]!r}{near_match(names[0], NETWORK_WORDS)}")
    return _made(network, NETWORK_WORDS, names[0], words[names[0]])


def _made(owner: Any, words: Words, name: str, value: Any) -> Handle:
    """The fault that a word makes."""
    made = _call(owner, words, name, value)
    if not isinstance(made, Handle):
        raise FaultError(f"{name}={value!r} makes no fault; write true, or its arguments")
    return made


def _call(owner: Any, words: Words, name: str, value: Any) -> Any:
    """Call a word with its arguments; false and null do not call it."""
    arguments = Arguments.of(words[name])
    if not arguments.complete:
        raise FaultError(f"{name}() takes a function, which JSON does not have")
    if value is None or value is False:
        return None
    if value is True:
        value = {}
    elif not isinstance(value, dict):
        if not arguments.first:
            raise BadRequest(f"{name} takes no value: write {{{name!r}: true}}".replace("'", '"'))
        value = {arguments.first: value}
    return getattr(owner, name)(**arguments.read(value)[1])


def fault_schema() -> Schema:
    """The schema of a fault to add."""
    possible = (each for each in RULE_WORDS.items() if Arguments.of(each[1]).complete)
    rule = {name: _word_schema(method) for name, method in possible}
    network = {name: _word_schema(method) for name, method in NETWORK_WORDS.items()}
    return {
        "type": "object",
        "description": (__doc__ or "").partition("\n\n")[2],
        "properties": {
            "on": {"type": ["string", "array"], "items": {"type": "string"}},
            **ON.schema["properties"],
            **rule,
            "network": {"type": ["object", "string"], "properties": {"on": {"type": "string"}, **network}},
            **{name: _word_schema(method) for name, method in LASTING_WORDS.items()},
        },
    }


def _word_schema(method: Callable[..., Any]) -> Schema:
    arguments = Arguments.of(method)
    kinds: list[Schema] = [{"type": ["boolean", "null"]}, arguments.schema]
    if arguments.first:
        kinds.insert(1, arguments.fields[arguments.first])
    return {"anyOf": kinds, "description": (method.__doc__ or "").partition("\n")[0]}
