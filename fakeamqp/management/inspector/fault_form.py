"""What the form for fault rules offers. The rule that it makes is added by the control interface."""

from __future__ import annotations

from typing import Any

from fakeamqp.dialects import protocol_named, protocol_names
from fakeamqp.faults.rule import ACTIONS, Rule
from fakeamqp.management.control.schemas import Arguments

_COUNT = {"name": "", "label": "Only count it", "help": "Count it and pass it on", "arguments": ()}
"""The choice of no action."""
_TRIGGERS = (
    ("", "every time"),
    ("times", "at most this many times"),
    ("after", "after this many others"),
    ("on_call", "at this one only, counted from 1"),
    ("with_probability", "with this probability, 0 to 1"),
)
_CONDITIONS = ("exchange", "routing_key", "queue", "body", "connection")


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
            _COUNT,
        ],
        "triggers": [{"name": name, "label": label} for name, label in _TRIGGERS],
        "conditions": _CONDITIONS,
    }


def arguments_of(action: str) -> tuple[dict[str, Any], ...]:
    """The arguments that the form asks for: `name`, `schema`, and the proposed `value` if there is one."""
    prefilled = ACTIONS[action].prefilled
    return tuple(
        {"name": name, "schema": schema, **({"value": prefilled[name]} if name in prefilled else {})}
        for name, schema in Arguments.of(getattr(Rule, action)).fields.items()
    )
