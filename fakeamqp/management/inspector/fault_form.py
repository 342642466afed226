"""What the form for fault rules offers, and the rule that it makes.

The page builds its fields from `offers`, and shows errors of `Faults` with the near matches that they name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from fakeamqp.dialects import protocol_named, protocol_names
from fakeamqp.faults.closing import When
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.rule import ACTIONS, Rule
from fakeamqp.faults.shapers import How

if TYPE_CHECKING:
    from fakeamqp.broker import Broker

_COUNT = "count"
"""The choice of no action."""
_TRIGGERS = (
    ("", "every time"),
    ("times", "at most this many times"),
    ("after", "after this many others"),
    ("on_call", "at this one only, counted from 1"),
    ("with_probability", "with this probability, 0 to 1"),
)
_CONDITIONS = ("exchange", "routing_key", "queue", "body", "connection")
_KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "int": ("integer", ()),
    "int | None": ("integer", ()),
    "int | str": ("integer", ()),
    "float": ("number", ()),
    "str | None": ("text", ()),
    "str": ("text", ()),
    "When": ("choice", get_args(When)),
    "How": ("choice", get_args(How)),
}
"""By annotation: the kind of an argument in a form, and its choices."""


def offers() -> dict[str, Any]:
    """The names of methods, and what a rule can do."""
    methods = dict.fromkeys(name for each in protocol_names() for name in protocol_named(each).method_names)
    return {
        "methods": ["confirm", "heartbeat", *sorted(methods)],
        "actions": [
            *(
                {
                    "name": name,
                    "label": action.label,
                    "help": (getattr(Rule, name).__doc__ or "").partition("\n")[0],
                    "arguments": arguments_of(name),
                }
                for name, action in ACTIONS.items()
                if action.label
            ),
            {"name": _COUNT, "label": "Only count it", "help": "Count it and pass it on", "arguments": ()},
        ],
        "triggers": [{"name": name, "label": label} for name, label in _TRIGGERS],
        "conditions": _CONDITIONS,
    }


def arguments_of(action: str) -> tuple[dict[str, Any], ...]:
    """The arguments that the form can ask for: `name`, `kind`, and `choices` or the proposed `value`."""
    made = []
    prefilled = ACTIONS[action].prefilled
    for name, annotation in getattr(Rule, action).__annotations__.items():
        if name != "return" and annotation in _KINDS:
            kind, choices = _KINDS[annotation]
            argument: dict[str, Any] = {"name": name, "kind": kind}
            if choices:
                argument["choices"] = list(choices)
            elif name in prefilled:
                argument["value"] = prefilled[name]
            made.append(argument)
    return tuple(made)


def add(broker: Broker, wanted: Mapping[str, Any]) -> Rule:
    """The rule that the form asks for. It is optional: a test does not fail if it never happens.

    Args:
        broker: the broker.
        wanted: `method`, `direction` (or ""), `conditions` by name, `action`, `arguments` by name, `trigger`
            and `number`. Values that are empty count as absent.

    Raises:
        FaultError: a name is misspelled, or a value is invalid; the text names the nearest match.
    """
    action = _text(wanted, "action") or _COUNT
    known = action in ACTIONS and bool(ACTIONS[action].label)
    if action != _COUNT and not known:
        raise FaultError(f"there is no action {action!r}")
    given = _object(wanted, "arguments")
    arguments = {
        each["name"]: _value(each["name"], each["kind"], given[each["name"]])
        for each in (arguments_of(action) if known else ())
        if given.get(each["name"]) not in (None, "")
    }
    trigger = _text(wanted, "trigger")
    if trigger not in dict(_TRIGGERS):
        raise FaultError(f"there is no trigger {trigger!r}")
    conditions = {
        name: value for name, value in _object(wanted, "conditions").items() if value not in (None, "")
    }
    unknown = [name for name in conditions if name not in _CONDITIONS]
    if unknown:
        raise FaultError(f"the form has no condition {unknown[0]!r}")
    direction: Any = _text(wanted, "direction") or None
    rule = broker.faults.on(_text(wanted, "method"), direction=direction, optional=True, **conditions)
    try:
        if trigger:
            kind = "number" if trigger == "with_probability" else "integer"
            getattr(rule, trigger)(_value(trigger, kind, wanted.get("number")))
        if known:
            getattr(rule, action)(**arguments)
    except BaseException:
        rule.remove()
        raise
    return rule


def remove(broker: Broker, key: str) -> str:
    """End a fault. Returns its sentence.

    Raises:
        FaultError: it has ended already.
    """
    handle = _found(broker, key)
    handle.remove()
    return str(handle)


def release(broker: Broker, key: str) -> int:
    """Release what a rule holds. Returns how many methods.

    Raises:
        FaultError: the fault has ended, or holds nothing.
    """
    handle = _found(broker, key)
    if not hasattr(handle, "release"):
        raise FaultError(f"this fault holds nothing: {handle}")
    count: int = handle.release()
    return count


def _found(broker: Broker, key: str) -> Any:
    for handle in broker.faults.rules:
        if str(id(handle)) == key:
            return handle
    raise FaultError("this fault is not in force any more")


def _text(wanted: Mapping[str, Any], name: str) -> str:
    value = wanted.get(name) or ""
    if not isinstance(value, str):
        raise FaultError(f"{name} must be text, not {value!r}")
    return value.strip()


def _object(wanted: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = wanted.get(name) or {}
    if not isinstance(value, dict):
        raise FaultError(f"{name} must be a JSON object, such as {{}}, not {value!r}")
    return value


def _value(name: str, kind: str, value: Any) -> Any:
    """A value of the form as the type that it has to be."""
    if kind not in ("integer", "number"):
        return value
    try:
        return int(value) if kind == "integer" else float(value)
    except (TypeError, ValueError):
        what = "a whole number" if kind == "integer" else "a number"
        raise FaultError(f"{name} takes {what}, not {value!r}") from None
