"""Filters of a source and properties of a link that become arguments of a consumer, or tests of messages.

Only streams filter. The other queues say that the filters are in force, and deliver all messages (RabbitMQ:
measured on 4.3.6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fakeamqp.protocols.amqp_1_0.codec.types import Described, Int, Milliseconds, Symbol, UInt, ULong
from fakeamqp.protocols.amqp_1_0.conversion import converted
from fakeamqp.protocols.amqp_1_0.filters.fields import IllFormed, Test, application_test, properties_test
from fakeamqp.protocols.amqp_1_0.filters.sql import read_expression
from fakeamqp.protocols.amqp_1_0.replies import SessionCrash
from fakeamqp.timestamps import Timestamp

if TYPE_CHECKING:
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_1_0.session import Amqp10Session

_OF_STREAMS: Final = "rabbitmq:stream-"
_OFFSET: Final = "rabbitmq:stream-offset-spec"
_VALUES: Final = "rabbitmq:stream-filter"
_UNFILTERED: Final = "rabbitmq:stream-match-unfiltered"
_SQL_NAME: Final = "sql-filter"
_SQL: Final = ("amqp:sql-filter", ULong(0x120))
_SECTIONS: Final[tuple[tuple[tuple[str, ULong], Callable[[Any], Test]], ...]] = (
    (("amqp:properties-filter", ULong(0x173)), properties_test),
    (("amqp:application-properties-filter", ULong(0x174)), application_test),
)
"""Descriptors of a property filter, and how its value is read."""
CAPABILITIES: Final = ("AMQP_FILTEX_PROP_V1_0", "AMQP_FILTEX_SQL_V1_0")
_PRIORITY: Final = "rabbitmq:priority"
_TIMEOUT: Final = "rabbitmq:consumer-timeout"


class Filters(NamedTuple):
    """What the filters of a source ask for."""

    arguments: dict[str, Any]
    """Of the consumer."""
    in_force: dict[Any, Any]
    """The filters that the answer has. One that cannot be read is left out, without an error."""
    passes: Callable[[Message], bool] | None
    """Whether a message is delivered; None if all are."""


def offered_capabilities(session: Amqp10Session, queue: Queue | None) -> tuple[Symbol, ...] | None:
    """What links with a queue offer."""
    choices = session.choices
    if queue is None or not queue.keeps_delivered or not choices.property_filters:
        return None
    return tuple(map(Symbol, CAPABILITIES[: 1 + choices.sql_filters]))


def link_arguments(session: Amqp10Session, queue: Queue, properties: Mapping[Any, Any]) -> dict[str, Any]:
    """The arguments of the consumer for the properties of its link."""
    arguments: dict[str, Any] = {}
    priority = properties.get(_PRIORITY)
    if type(priority) is Int:  # Other numbers are ignored (RabbitMQ: measured on 4.3.6).
        arguments["x-priority"] = int(priority)
    timeout = properties.get(_TIMEOUT)
    known = session.connection.personality.consumer_arguments[queue.type_name]
    if type(timeout) is UInt and "x-consumer-timeout" in known:
        arguments["x-consumer-timeout"] = int(timeout)
    return arguments


def read_filters(session: Amqp10Session, queue: Queue, filters: Mapping[Any, Any]) -> Filters:
    """What a set of filters asks for.

    The last one comes first: of two that exclude each other it is in force (RabbitMQ: measured on 4.3.6).

    Raises:
        EndFault: RabbitMQ crashes.
    """
    choices, permitted = session.choices, session.broker.features.permitted
    bare = not choices.filters_need_descriptors or permitted("amqp_filter_set_bug")
    arguments: dict[str, Any] = {}
    in_force: dict[Any, Any] = {}
    tests: dict[object, Test] = {}
    for name, given in reversed([*filters.items()]):
        if choices.property_filters and not isinstance(name, Symbol):
            raise SessionCrash(f"the name of a filter is no symbol: {name!r}")
        value = given
        of_stream = isinstance(name, str) and name.startswith(_OF_STREAMS)
        if of_stream and not isinstance(value, Described) and bare:
            value = Described(name, value)
        argument = _argument(session, name, value)
        if argument is not None:
            arguments[argument] = _plain(value.value)
        else:
            why = "" if isinstance(value, Described) else ": it is no described value"
            try:
                taken = choices.property_filters and _tests(session, name, value, tests)
            except IllFormed as problem:
                taken, why = False, f": {problem}"
            if not taken:
                session.connection.note("filter left out", f"{name!r}{why}")
                continue
        in_force[name] = value
    passes = _passing(session, list(tests.values())) if tests and queue.keeps_delivered else None
    return Filters(arguments, dict(reversed(in_force.items())), passes)


def _argument(session: Amqp10Session, name: str, value: Any) -> str | None:
    """The argument of a consumer that a filter of streams becomes; None if it is none, or of a wrong type."""
    choices = session.choices
    if not isinstance(value, Described) or not isinstance(value.descriptor, Symbol):
        return None
    descriptor, content = value.descriptor, value.value
    if not choices.property_filters and descriptor != name:
        return None
    kind = type(content)
    fits = {
        _OFFSET: kind is str
        or (kind is Symbol and choices.offsets_may_be_symbols)
        or (isinstance(content, int) and kind is not bool and content >= 0),
        _VALUES: kind in (str, list),
        _UNFILTERED: kind is bool,
    }
    return descriptor.replace("rabbitmq:", "x-").removesuffix("-spec") if fits.get(descriptor) else None


def _tests(session: Amqp10Session, name: str, value: Any, tests: dict[object, Test]) -> bool:
    """Add the test of a property filter or an SQL filter, unless others exclude it. IllFormed."""
    try:
        if name == _SQL_NAME and session.choices.sql_filters:
            if tests:
                return False
            if not isinstance(value, Described) or type(value.value) is not str:
                raise SessionCrash("an SQL filter is no described string")
            if not _is(value.descriptor, _SQL):
                return False
            clock = session.broker.clock
            expression = read_expression(value.value, lambda: int(clock.time() * 1000))
            tests[_SQL] = lambda properties: expression(properties) is True
            return True
        for descriptors, read in _SECTIONS:
            if isinstance(value, Described) and _is(value.descriptor, descriptors):
                test = read(value.value)
                if _SQL in tests or descriptors in tests:
                    return False
                tests[descriptors] = test
                return True
    except OverflowError as problem:
        raise SessionCrash(str(problem)) from None
    return False


def _is(descriptor: Any, descriptors: tuple[str, ULong]) -> bool:
    return type(descriptor) in (Symbol, ULong) and descriptor in descriptors


def _passing(session: Amqp10Session, tests: list[Test]) -> Callable[[Message], bool]:
    """Whether a message passes all tests. Where RabbitMQ crashes, the session of the consumer ends."""

    def passes(message: Message) -> bool:
        properties = converted(message.properties, session.choices)
        try:
            return all(test(properties) for test in tests)
        except OverflowError as problem:
            session.fail(SessionCrash(str(problem)))
            return False

    return passes


def _plain(value: Any) -> Any:
    """The value of a filter as an argument of 0-9-1."""
    if isinstance(value, Milliseconds):
        return Timestamp(value // 1000)
    if isinstance(value, list):
        return [each for each in value if type(each) is str]
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return str(value) if isinstance(value, Symbol) else value
