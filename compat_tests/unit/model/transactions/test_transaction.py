from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from fakeamqp.model.transactions import Transaction


def publish(log: list[str], name: str, accepted: bool = True) -> Callable[[], bool]:
    def perform() -> bool:
        log.append(name)
        return accepted

    return perform


def settle(log: list[str], how: str) -> Callable[[Sequence[Any]], None]:
    return lambda deliveries: log.append(f"{how} {','.join(deliveries)}")


def deliveries(*names: str) -> Any:
    """The transaction never looks at them."""
    return cast(Any, list(names))


def test_nothing_happens_before_the_commit() -> None:
    log: list[str] = []
    transaction = Transaction()
    transaction.publish(publish(log, "one"))
    transaction.settle(settle(log, "accept"), deliveries("a"))
    assert log == []


def test_publishes_come_first_and_each_kind_keeps_its_order() -> None:
    log: list[str] = []
    transaction = Transaction()
    transaction.settle(settle(log, "reject"), deliveries("a", "b"))
    transaction.publish(publish(log, "one"))
    transaction.settle(settle(log, "accept"), deliveries("c"))
    transaction.publish(publish(log, "two"))
    assert transaction.commit()
    assert log == ["one", "two", "reject a,b", "accept c"]


def test_a_commit_does_its_work_once() -> None:
    log: list[str] = []
    transaction = Transaction()
    transaction.publish(publish(log, "one"))
    transaction.settle(settle(log, "accept"), deliveries("a"))
    transaction.commit()
    log.clear()
    assert transaction.commit()
    assert log == []
    assert transaction.rollback() == []


def test_one_refused_publish_is_told_and_the_others_are_made() -> None:
    log: list[str] = []
    transaction = Transaction()
    transaction.publish(publish(log, "one", accepted=False))
    transaction.publish(publish(log, "two"))
    transaction.settle(settle(log, "accept"), deliveries("a"))
    assert not transaction.commit()
    assert log == ["one", "two", "accept a"]


def test_a_rollback_gives_the_deliveries_back_and_forgets_the_rest() -> None:
    log: list[str] = []
    transaction = Transaction()
    transaction.publish(publish(log, "one"))
    transaction.settle(settle(log, "accept"), deliveries("a", "b"))
    transaction.settle(settle(log, "reject"), deliveries("c"))
    assert transaction.rollback() == deliveries("a", "b", "c")
    assert transaction.commit()
    assert log == []


def test_what_is_withdrawn_is_not_settled() -> None:
    log: list[str] = []
    transaction = Transaction()
    transaction.settle(settle(log, "accept"), deliveries("a", "b"))
    transaction.settle(settle(log, "reject"), deliveries("c", "b"))
    assert transaction.withdraw(lambda each: cast(Any, each) == "b") == deliveries("b", "b")
    assert transaction.withdraw(lambda each: cast(Any, each) == "b") == []
    transaction.commit()
    assert log == ["accept a", "reject c"]
