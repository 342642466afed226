"""A function of the test's that raises fails the test, and not the broker."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from compat_tests.unit.faults.server import FaultServer
from fakeamqp.faults import Faults, FrameGroup, Rule


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
def test_every_function(server: FaultServer, faults: Faults, make: Any) -> None:
    rule: Rule = make(faults)
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


def test_late_actions(server: FaultServer, faults: Faults) -> None:
    rule = faults.on("basic.publish").delay(1).call(fails)
    publisher = server.publisher()
    publisher.publish(b"1")
    server.advance(1)
    assert publisher.confirms == ["ack 1"]
    assert isinstance(rule.error, Mistake)


def test_the_actions_behind_it_are_done(server: FaultServer, faults: Faults) -> None:
    faults.on("basic.publish").call(fails).nack()
    publisher = server.publisher()
    publisher.publish(b"1")
    assert publisher.confirms == ["nack 1"]


def test_verify_raises_it_once(server: FaultServer, faults: Faults) -> None:
    faults.on("basic.publish").call(fails)
    passes_on(server)
    with pytest.raises(Mistake):
        faults.verify()
    faults.verify()


def test_who_has_waited_is_not_told_again(server: FaultServer, faults: Faults) -> None:
    rule = faults.on("basic.publish").call(fails)
    passes_on(server)
    with pytest.raises(Mistake):
        rule.wait()
    rule.wait()
    faults.verify()


def test_only_the_first_is_kept(server: FaultServer, faults: Faults) -> None:
    errors = [Mistake("one"), Mistake("two")]

    def fail(group: FrameGroup) -> None:
        raise errors[rule.hits - 1]

    rule = faults.on("basic.publish").call(fail)
    server.publisher().publish(b"1", b"2")
    assert rule.error is errors[0]


def test_failures_of_pytest(server: FaultServer, faults: Faults) -> None:
    """They are no Exception."""
    faults.on("basic.publish").call(lambda group: pytest.fail("not so"))
    passes_on(server)
    with pytest.raises(BaseException, match="not so"):
        faults.verify()


def test_a_function_that_makes_what_no_frame_can_carry(server: FaultServer, faults: Faults) -> None:
    rule = faults.on("basic.publish").replace(routing_key=lambda old: "x" * 300)
    publisher = server.publisher()
    publisher.publish(b"1")
    assert publisher.stored == [b"1"]
    assert rule.error is not None


def test_who_interrupts_is_not_kept_from_it(server: FaultServer, faults: Faults) -> None:
    def interrupt(_: FrameGroup) -> None:
        raise KeyboardInterrupt

    faults.on("basic.publish").call(interrupt)
    publisher = server.publisher()
    with pytest.raises(KeyboardInterrupt):
        publisher.publish(b"1")
