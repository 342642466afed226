from __future__ import annotations

import asyncio
import inspect
import pydoc

from fakeamqp import Broker
from fakeamqp.blocking import blocking


class Waiter:
    @blocking
    def wait(self, n: int = 1) -> int:
        """Wait for so many."""
        return n

    @wait.coroutine
    async def _wait_coroutine(self, n: int = 1) -> int:
        return n + 100


class Patient(Waiter):
    @blocking
    def wait(self, n: int = 1) -> int:
        return 2 * super().wait(n)

    @wait.coroutine
    async def _wait_coroutine(self, n: int = 1) -> int:
        return 2 * await super().wait.aio(n)


def test_both_forms_take_the_same_arguments() -> None:
    assert Waiter().wait(3) == 3
    assert asyncio.run(Waiter().wait.aio(n=3)) == 103


def test_a_subclass_overrides_both_forms() -> None:
    assert Patient().wait(3) == 6
    assert asyncio.run(Patient().wait.aio(3)) == 206


def test_class_has_the_function_with_its_text_and_both_signatures() -> None:
    assert inspect.isfunction(Waiter.wait)
    assert str(inspect.signature(Waiter.wait)) == "(self, n: 'int' = 1) -> 'int'"
    assert inspect.iscoroutinefunction(Waiter.wait.aio)
    assert "Wait for so many." in pydoc.render_doc(Waiter, renderer=pydoc.plaintext)
    assert "`wait` for coroutines" in (Waiter.wait.aio.__doc__ or "")


def test_bound_method_has_name_signature_and_text_of_the_function() -> None:
    method = Waiter().wait
    assert (method.__name__, method.__doc__) == ("wait", "Wait for so many.")
    assert str(inspect.signature(method)) == str(inspect.signature(method.aio)) == "(n: 'int' = 1) -> 'int'"
    assert "Waiter.wait" in repr(method)


def test_every_wait_of_a_broker_has_a_form_for_coroutines() -> None:
    waits = [name for name, value in vars(Broker).items() if "timeout" in str(getattr(value, "__doc__", ""))]
    for name in ("start", "stop", "wait_for", "wait_until_idle", "expect_published", *waits):
        assert inspect.iscoroutinefunction(getattr(Broker, name).aio), name
