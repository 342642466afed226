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


def test_commit_performs_publishes_before_settlements_in_order() -> None:
    log: list[str] = []
    transaction = Transaction()
    transaction.settle(settle(log, "reject"), deliveries("a", "b"))
    transaction.publish(publish(log, "one"))
    transaction.settle(settle(log, "accept"), deliveries("c"))
    transaction.publish(publish(log, "two"))
    assert transaction.commit()
    assert log == ["one", "two", "reject a,b", "accept c"]


def test_commit_performs_work_only_once() -> None:
    log: list[str] = []
    transaction = Transaction()
    transaction.publish(publish(log, "one"))
    transaction.settle(settle(log, "accept"), deliveries("a"))
    transaction.commit()
    log.clear()
    assert transaction.commit()
    assert log == []
    assert transaction.rollback() == []


def test_commit_with_refused_publish_returns_false_and_performs_remaining_work() -> None:
    log: list[str] = []
    transaction = Transaction()
    transaction.publish(publish(log, "one", accepted=False))
    transaction.publish(publish(log, "two"))
    transaction.settle(settle(log, "accept"), deliveries("a"))
    assert not transaction.commit()
    assert log == ["one", "two", "accept a"]


def test_rollback_returns_deliveries_and_discards_all_work() -> None:
    log: list[str] = []
    transaction = Transaction()
    transaction.publish(publish(log, "one"))
    transaction.settle(settle(log, "accept"), deliveries("a", "b"))
    transaction.settle(settle(log, "reject"), deliveries("c"))
    assert transaction.rollback() == deliveries("a", "b", "c")
    assert transaction.commit()
    assert log == []


def test_withdrawn_delivery_is_not_settled_at_commit() -> None:
    log: list[str] = []
    transaction = Transaction()
    transaction.settle(settle(log, "accept"), deliveries("a", "b"))
    transaction.settle(settle(log, "reject"), deliveries("c", "b"))
    assert transaction.withdraw(lambda each: cast(Any, each) == "b") == deliveries("b", "b")
    assert transaction.withdraw(lambda each: cast(Any, each) == "b") == []
    transaction.commit()
    assert log == ["accept a", "reject c"]
