"""The parts of a predicate that the error of `broker.wait_for` shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from fakeamqp.inspect import BadExpectation, QueueHandle
from fakeamqp.inspect.predicates import Predicate


class App:
    def __init__(self, *shipped: int) -> None:
        self.shipped = list(shipped)

    def done(self, number: int = 3) -> bool:
        """Whether all was shipped."""
        return len(self.shipped) == number

    def busy(self) -> bool:
        number = 3
        return len(self.shipped) == number


app = App(7)


def shown(function: Callable[[], object]) -> list[str]:
    """The predicate, what it returned, and the values in it."""
    predicate = Predicate(function)
    predicate()
    return [f"{predicate}: {predicate.results}", *(" ".join(line.split()) for line in predicate.values())]


def test_source_and_values_of_a_lambda_are_shown() -> None:
    wanted = 2
    assert shown(lambda: len(app.shipped) == wanted + 1) == [
        "lambda: len(app.shipped) == wanted + 1: False",
        "len(app.shipped) 1",
        "app.shipped [7]",
        "wanted + 1 3",
        "wanted 2",
    ]


def test_shown_values_come_from_one_call_with_short_circuit() -> None:
    called: list[str] = []

    def call(name: str) -> bool:
        called.append(name)
        return name == "yes"

    assert shown(lambda: call("no") and call("never")) == [
        'lambda: call("no") and call("never"): False',
        'call("no") False',
    ]
    assert called == ["no", "no"]


def test_lambdas_on_the_same_line_are_distinguished() -> None:
    first, second = (lambda: len(app.shipped) == 2), (lambda: app.shipped == [8])
    outer = lambda: (lambda: app.shipped == [9])() and 1  # noqa: E731
    assert shown(first)[0] == "lambda: len(app.shipped) == 2: False"
    assert shown(second)[0] == "lambda: app.shipped == [8]: False"
    assert shown(outer)[0] == "lambda: (lambda: app.shipped == [9])() and 1: False"


def test_multiline_lambda_is_shown_on_a_single_line() -> None:
    [function] = [
        lambda: (
            app.shipped  # Not yet.
            == [8]
        )
    ]
    assert shown(function)[0] == "lambda: app.shipped == [8]: False"


def test_arguments_with_defaults_keep_their_values() -> None:
    checks = [lambda n=n, *, m=n + 1: len(app.shipped) in (n, m) for n in (2, 3)]
    assert shown(checks[0])[1:] == ["len(app.shipped) 1", "app.shipped [7]", "n 2", "m 3"]


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        (app.done, ["App.done: False", "len(self.shipped) 1", "self.shipped [7]", "number 3"]),
        (app.busy, ["App.busy: False"]),
        (lambda: [n for n in app.shipped if n > 7], ["lambda: [n for n in app.shipped if n > 7]: []"]),
        (lambda: not all(n > 6 for n in app.shipped), ["all(n > 6 for n in app.shipped) True"]),
        (lambda: (m := app.shipped[0]) == f"{m}", ["app.shipped[0] 7", "app.shipped [7]"]),
        (eval("lambda: app", {"app": None}), ["<lambda>: None"]),
    ],
)
def test_values_are_shown_if_the_function_is_one_expression(
    function: Callable[[], object], lines: list[str]
) -> None:
    assert shown(function)[-len(lines) :] == lines


def test_partial_function_is_shown_by_its_repr() -> None:
    assert "functools.partial(" in shown(partial(app.done, 5))[0]


def test_results_of_a_predicate_are_shown_in_order_without_repetitions() -> None:
    values: list[Any] = [None, None, [], [], 0, False]
    predicate = Predicate(lambda: values.pop(0))
    for _ in range(6):
        predicate()
    assert predicate.results == "None, then [], then 0, then False"


def test_value_with_a_failing_repr_does_not_hide_other_values() -> None:
    class Silent:
        def __repr__(self) -> str:
            raise ValueError

    silent = Silent()
    assert shown(lambda: app.shipped == silent)[1:] == [
        "app.shipped [7]",
        "silent <Silent whose repr raises ValueError>",
    ]


async def soon() -> bool:
    return False


@pytest.mark.parametrize(
    ("function", "mistake"),
    [
        (lambda: app.done, r"wait_for\(lambda: app\.done\) returns the function App\.done, .*; call it"),
        (lambda: (n > 7 for n in app.shipped), r"a generator, which is always true; use any\(\.\.\.\)"),
        (soon, "something to await, which is always true"),
        (lambda: QueueHandle(None, "orders"), "a handle, which is always true; ask for .*"),  # type: ignore[arg-type]
    ],
)
def test_predicate_with_an_always_true_result_is_an_error(
    function: Callable[[], object], mistake: str
) -> None:
    with pytest.raises(BadExpectation, match=mistake):
        Predicate(function)()


def test_predicate_without_a_function_is_an_error() -> None:
    with pytest.raises(BadExpectation, match=r"wait_for\(False\): give a function"):
        Predicate(app.done())  # type: ignore[arg-type]
    assert asyncio.run(soon()) is False
