"""Names that the public interface had before, each with the new one: one table.

The errors of old names, the list on docs/upgrading.md and `fakeamqp migrate` are made from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["CHANGES", "Change", "by_owner", "error_of"]


@dataclass(frozen=True)
class Change:
    """One name that has changed.

    Args:
        owner: the class or module that had the name.
        old: the name.
        new: what replaces it, as it is written after the owner; of a keyword or by hand, in words.
        how: "name": the name only. "property": a method has become a collection, whose `of` takes the virtual
            host. "exchange": the argument `exchange` has become `Broker.exchange(...)`, whose method it is.
            "import": another module has the name. "fixture": a fixture of pytest. "by hand": the call is
            to be rewritten.
        distinct: whether no other library has an attribute of this name; otherwise an attribute counts only
            of a variable that is a broker.
    """

    owner: str
    old: str
    new: str
    how: Literal["name", "property", "exchange", "import", "fixture", "by hand"] = "name"
    distinct: bool = True

    def __str__(self) -> str:
        if self.how == "fixture":
            return f"the fixture `{self.old}` is `{self.new}`"
        if self.how == "import":
            return f"`from {self.owner} import {self.old}` is `from {self.new} import {self.old}`"
        if self.how == "by hand":
            return f"`{self.owner}.{self.old}`: {self.new}"
        old = f"`{self.owner}.{self.old}{'()' if self.how == 'property' else ''}`"
        return f"{old} is `{self.owner}.{self.new}`"


def _coroutines(owner: str, names: str, *, distinct: bool = True) -> Iterable[Change]:
    return [Change(owner, f"{name}_async", f"{name}.aio", distinct=distinct) for name in names.split()]


def _moved(names: str) -> Iterable[Change]:
    return [Change("Broker", name, f"admin.{name}", distinct=False) for name in names.split()]


CHANGES: tuple[Change, ...] = (
    *_coroutines(
        "Broker",
        "start stop wait_for wait_until_idle expect_published expect_nothing_published expect_returned "
        "expect_dead_lettered expect_dropped expect_no_findings",
    ),
    *(
        Change("Broker", name, name, "property", distinct=False)
        for name in ("queues", "exchanges", "consumers", "policies")
    ),
    Change("Broker", "explain", "exchange(...).explain", "exchange", distinct=False),
    *_moved(
        "add_user remove_user clear_permissions add_virtual_host remove_virtual_host set_policy clear_policy "
        "set_limits set_user_limits set_firehose add_service race_seed management_url management_port "
        "control_url inspector_url virtual_hosts topology memory failures late amqp_0_9"
    ),
    Change("Broker", "all_published", "published.with_own"),
    Change("Broker", "checked", "expect_no_findings.during", distinct=False),
    Change("Trace", "check", "findings", distinct=False),
    Change("fakeamqp.inspect", "QueueInspector", "`QueueHandle`", "by hand", distinct=False),
    *(
        Change("fakeamqp", name, home, "import")
        for home, names in (
            (
                "fakeamqp.errors",
                "BadBody CannotListen ClockError DefinitionsError FeatureError InterceptError LimitsError "
                "ManagementUnavailable NoSuchExchange NoSuchQueue NotDeadLettered NotDropped NotIdle "
                "NotPublished NotReturned NothingPending PolicyError PortInUse TLSUnavailable UnreadResult",
            ),
            ("fakeamqp.inspect", "ConnectionHandle TimerView"),
            ("fakeamqp.settings", "ChoiceDifference PERSONALITIES"),
        )
        for name in names.split()
    ),
    Change("pytest", "spark_amqp", "amqp_spark", "fixture"),
    *_coroutines("QueueHandle", "wait_for wait_until_consumed"),
    *_coroutines("PortableQueue", "wait_for get"),
    *_coroutines("Handle", "wait"),
    *_coroutines("Registration", "wait"),
    *_coroutines("Clock", "advance advance_to advance_to_next"),
)
"""All of them, in the order of docs/upgrading.md."""


def by_owner(owner: str) -> Mapping[str, Change]:
    """The changes of one class or module, by the old name."""
    return {each.old: each for each in CHANGES if each.owner == owner}


def error_of(change: Change) -> AttributeError:
    """The error of an old name."""
    return AttributeError(f"{change}. `fakeamqp migrate PATHS` shows what else to change", name=change.old)
