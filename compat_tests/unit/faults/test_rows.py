"""Rows of actions: what forms read of them."""

from __future__ import annotations

import inspect

from compat_tests.tools.matrix import cases
from fakeamqp.faults import Rule, actions, closing
from fakeamqp.faults.actions import Action
from fakeamqp.faults.rule import ACTIONS
from fakeamqp.management.inspector.fault_form import arguments_of, offers


def test_every_action_has_one_row() -> None:
    classes = {
        each
        for module in (actions, closing)
        for each in vars(module).values()
        if inspect.isclass(each) and issubclass(each, Action)
    }
    rows = list(ACTIONS.values())
    assert len(rows) == len(set(rows)) and set(rows) == classes - {Action, closing.CloseAction}


def test_the_form_has_the_arguments_and_the_help_of_the_method_of_rule() -> None:
    offered = {action["name"]: action["help"] for action in offers()["actions"]}
    with cases() as case:
        for name, action in ACTIONS.items():
            with case(name):
                method = getattr(Rule, name)
                if action.label:
                    assert offered[name] == inspect.getdoc(method).splitlines()[0]
                asked = [argument["name"] for argument in arguments_of(name)]
                assert [each for each in inspect.signature(method).parameters if each in asked] == asked
    delay = {argument["name"]: argument for argument in arguments_of("delay")}
    assert delay == {
        "seconds": {"name": "seconds", "schema": {"type": "number"}, "value": 1},
        "jitter": {"name": "jitter", "schema": {"type": "number"}},
    }
    when = arguments_of("close_channel")[-1]
    assert when == {"name": "when", "schema": {"enum": ["instead", "before", "after"]}}


def test_form_offers_the_actions_that_have_a_label_and_no_action() -> None:
    offered = [action["name"] for action in offers()["actions"]]
    assert offered == [*(name for name, action in ACTIONS.items() if action.label), ""]
