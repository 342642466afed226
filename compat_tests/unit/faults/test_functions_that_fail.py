"""A function of the test's that raises fails the test, and not the broker."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from compat_tests.unit.faults.server import FaultServer, Publisher
from fakeamqp.faults import FrameGroup, Rule


class Mistake(Exception):
    pass


def fails(_: Any) -> Any:
    raise Mistake("by mistake")


def passes_on(server: FaultServer) -> None:
    """The broker deals with a publish as if there were no rule."""
    publisher = server.publisher()
    publisher.publish(b"1")
    assert publisher.confirms == ["ack 1"]


@pytest.mark.parametrize(
    "make",
    [
        lambda faults: faults.on("basic.publish").call(fails),
        lambda faults: faults.on("basic.publish", body=fails),
        lambda faults: faults.on("basic.publish", headers={"x": 1}, queue=fails),
        lambda faults: faults.on("confirm", body=fails),
        lambda faults: faults.on("confirm").call(fails),
        lambda faults: faults.on("basic.publish").replace(body=fails),
        lambda faults: faults.on("basic.publish").replace(routing_key=fails),
        lambda faults: faults.on("basic.publish").delay(0).call(fails),
    ],
)
def test_exception_of_a_function_is_kept_in_its_rule_and_the_publish_passes(
    server: FaultServer, make: Any
) -> None:
    rule: Rule = make(server.faults)
    publisher = server.publisher()
    publisher.publish(b"1", headers={"x": 1})
    assert publisher.confirms == ["ack 1"]
    assert isinstance(rule.error, Mistake)
    with pytest.raises(Mistake, match="by mistake") as caught:
        rule.wait(5)
    names = [entry.name for entry in caught.traceback]
    assert names[-1] == "fails"
    if sys.version_info >= (3, 11):
        (note,) = caught.value.__notes__
        assert note.startswith(f"raised in a fault rule: {rule}\nat: ")
    assert server.said[-1].endswith("has failed: Mistake('by mistake')")


def test_exception_of_a_function_after_a_delay_is_kept_in_its_rule(server: FaultServer) -> None:
    rule = server.faults.on("basic.publish").delay(1).call(fails)
    publisher = server.publisher()
    publisher.publish(b"1")
    server.advance(1)
    assert publisher.confirms == ["ack 1"]
    assert isinstance(rule.error, Mistake)


def test_actions_after_a_failed_call_are_carried_out(publisher: Publisher) -> None:
    publisher.faults.on("basic.publish").call(fails).nack()
    publisher.publish(b"1")
    assert publisher.confirms == ["nack 1"]


def test_verify_raises_the_exception_of_a_function_once(server: FaultServer) -> None:
    server.faults.on("basic.publish").call(fails)
    passes_on(server)
    with pytest.raises(Mistake):
        server.faults.verify()
    server.faults.verify()


def test_exception_raised_by_wait_is_not_raised_again(server: FaultServer) -> None:
    rule = server.faults.on("basic.publish").call(fails)
    passes_on(server)
    with pytest.raises(Mistake):
        rule.wait()
    rule.wait()
    server.faults.verify()


def test_rule_keeps_the_first_exception_of_its_function(server: FaultServer) -> None:
    errors = [Mistake("one"), Mistake("two")]

    def fail(group: FrameGroup) -> None:
        raise errors[rule.hits - 1]

    rule = server.faults.on("basic.publish").call(fail)
    server.publisher().publish(b"1", b"2")
    assert rule.error is errors[0]


def test_verify_raises_a_pytest_failure_of_a_function(server: FaultServer) -> None:
    """It is no `Exception`."""
    server.faults.on("basic.publish").call(lambda group: pytest.fail("not so"))
    passes_on(server)
    with pytest.raises(BaseException, match="not so"):
        server.faults.verify()


def test_replaced_routing_key_of_300_bytes_is_an_error_and_the_publish_passes(publisher: Publisher) -> None:
    rule = publisher.faults.on("basic.publish").replace(routing_key=lambda old: "x" * 300)
    publisher.publish(b"1")
    assert publisher.stored == [b"1"]
    assert rule.error is not None


def test_keyboard_interrupt_in_a_function_is_raised_at_once(publisher: Publisher) -> None:
    def interrupt(_: FrameGroup) -> None:
        raise KeyboardInterrupt

    publisher.faults.on("basic.publish").call(interrupt)
    with pytest.raises(KeyboardInterrupt):
        publisher.publish(b"1")
