"""How the queues of a virtual host come and go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from fakeamqp.model.declarations import (
    check_alternate,
    check_name,
    check_removed_arguments,
    check_same_queue,
)
from fakeamqp.model.errors import AccessRefused, NotFound, PreconditionFailed, ResourceLocked
from fakeamqp.model.limits import check_queue_limit
from fakeamqp.model.queues import Queue, queue_class
from fakeamqp.model.queues.options import KINDS, check_dead_letter_exchange, queue_options, queue_type

if TYPE_CHECKING:
    from typing_extensions import Required

    from fakeamqp.model.ends import DropReason
    from fakeamqp.model.virtual_host.bindings import BindingRegister
    from fakeamqp.model.virtual_host.virtual_host import VirtualHost

__all__ = ["QueueProperties", "QueueRegister", "check_owner"]


class QueueProperties(TypedDict, total=False):
    """What a declaration may say of a queue beside its name."""

    owner: Required[object]
    durable: bool
    exclusive: bool
    auto_delete: bool
    arguments: Mapping[str, Any] | None
    alternate_exchange: str | None
    freeable: bool
    priorities: bool | None


class QueueRegister:
    """Declares, creates and deletes queues; `VirtualHost.queues` is what there is."""

    __slots__ = ("_bindings", "_virtual_host")

    def __init__(self, virtual_host: VirtualHost, bindings: BindingRegister) -> None:
        self._virtual_host = virtual_host
        self._bindings = bindings

    def declare(
        self,
        name: str,
        *,
        owner: object,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
        reserved: bool = False,
        alternate_exchange: str | None = None,
        freeable: bool = False,
        priorities: bool | None = None,
    ) -> Queue:
        """Create the queue (with a name of the broker's making where `name` is empty), or confirm it.

        `owner` is the connection or session that declares it, and that an exclusive queue belongs to; None
        where nobody does, who is denied nothing. `reserved` permits a name that only the broker may give.
        `alternate_exchange`, `freeable` and `priorities` are those of a new queue: see `Queue`. An exclusive
        queue can be durable only if it is freeable.

        Raises:
            AccessRefused: the name is reserved.
            InternalError: it needs a deprecated feature that is not permitted.
            ResourceLocked: the queue is exclusive to somebody else, or exclusivity differs.
            PreconditionFailed: there is one that differs, or an argument or the name is illegal.
            NotAllowed: there is one with another alternate exchange.
            NotFound: there is no such alternate exchange.
            PreconditionFailed, ResourceError: there may be no more queues, by personality.
        """
        virtual_host = self._virtual_host
        arguments = virtual_host.metadata.with_queue_type(
            virtual_host.state.personality,
            arguments or {},
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
        )
        if name:
            if not reserved:
                self.check_name(name)
            existing = virtual_host.queues.get(name)
            if existing is not None:
                check_owner(existing, owner)
                if exclusive != (existing.exclusive_owner is not None):
                    _refuse_locked(existing)
                check_same_queue(existing, durable=durable, auto_delete=auto_delete, arguments=arguments)
                check_alternate(virtual_host, alternate_exchange, existing)
                existing.asked_for()
                return existing
        else:
            self._check_server_named(arguments)
        return self.create(
            name or None,
            owner=owner,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            arguments=arguments,
            alternate_exchange=alternate_exchange,
            freeable=freeable,
            priorities=priorities,
        )

    def create(
        self,
        name: str | None,
        *,
        owner: object,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
        alternate_exchange: str | None = None,
        freeable: bool = False,
        priorities: bool | None = None,
        special: type[Queue] | None = None,
        permits_all: bool = False,
    ) -> Queue:
        """Create the queue, whose name nothing has and may be any at all; see `declare`.

        With None the broker finds a name. `permits_all` leaves out what the personality denies or has removed
        in 0-9-1.

        Raises:
            InternalError: it needs a deprecated feature that is not permitted.
            PreconditionFailed: an argument is illegal.
            NotFound: there is no such alternate exchange.
            PreconditionFailed, ResourceError: there may be no more queues, by personality.
        """
        virtual_host = self._virtual_host
        personality = virtual_host.state.personality
        arguments = virtual_host.metadata.with_queue_type(
            personality, arguments or {}, durable=durable, exclusive=exclusive, auto_delete=auto_delete
        )
        shown = name or ""
        check_dead_letter_exchange(shown, virtual_host.name, arguments)
        default = virtual_host.metadata.default_queue_type or "classic"
        type_name = queue_type(shown, virtual_host.name, arguments, personality, default)
        options = queue_options(type_name, shown, virtual_host.name, arguments, personality)
        features = virtual_host.state.features
        denies = owner is not None and not permits_all
        if denies:
            check_removed_arguments(shown, virtual_host.name, arguments, personality)
            if not durable and not exclusive:
                features.require("transient_nonexcl_queues")
        kind = special if special is not None and type_name == "classic" else queue_class(type_name)
        kind.check_declaration(
            shown, virtual_host.name, durable=durable, exclusive=exclusive, auto_delete=auto_delete
        )
        kind.check_arguments(shown, virtual_host.name, arguments, personality)
        check_alternate(virtual_host, alternate_exchange)
        name = virtual_host.state.names.queue() if name is None else name
        check_queue_limit(virtual_host, name)
        if denies and type_name == "classic" and "x-queue-master-locator" in arguments:
            features.require("queue_master_locator")
        queue = kind(
            virtual_host,
            name,
            # What goes with its owner is never durable.
            durable=durable and (not exclusive or freeable),
            exclusive_owner=owner if exclusive else None,
            auto_delete=auto_delete,
            arguments=arguments,
            options=options,
            alternate_exchange=alternate_exchange,
            freeable=freeable,
            priorities=priorities,
        )
        virtual_host.policies.adopt_queue(queue)
        virtual_host.queues[name] = queue
        connection = getattr(owner, "name", None)
        virtual_host.note("queue declared", queue=name, type=type_name, connection=connection)
        virtual_host.routing.forget()
        return queue

    def _check_server_named(self, arguments: Mapping[str, Any]) -> None:
        """Refuse to find a name for a queue whose type is for names that programs agree on."""
        asked = arguments.get("x-queue-type")
        kind = queue_class(asked) if isinstance(asked, str) and asked in KINDS else None
        if kind is not None and kind.replicated:
            raise PreconditionFailed(f"Cannot declare a server-named queue for type {KINDS[kind.type_name]}")

    def check_name(self, name: str) -> None:
        """May a queue be declared under this name?

        Raises:
            AccessRefused: it is reserved (queue.declare/queue-reserved).
            PreconditionFailed: it is illegal.
        """
        virtual_host = self._virtual_host
        check_name(virtual_host.state.personality, "queue", name)
        known = virtual_host.state.personality.reserved_queue_redeclarable and name in virtual_host.queues
        if name.startswith("amq.") and not known:
            raise AccessRefused(f"queue name '{name}' contains reserved prefix 'amq.*'")

    def delete(
        self,
        name: str,
        owner: object,
        *,
        if_unused: bool = False,
        if_empty: bool = False,
        confirm: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Delete a queue with what it holds.

        `confirm` is told how many messages were ready, before consumers hear that the queue has gone
        (RabbitMQ: measured).

        Raises:
            PreconditionFailed: it is in use or not empty and the request forbids that.
            ResourceLocked: it is exclusive to somebody else.
            NotFound: there is none, in personality `spec`.
        """
        virtual_host = self._virtual_host
        personality = virtual_host.state.personality
        queue = virtual_host.queues.get(name)
        if queue is None:
            if personality.deleting_missing_is_an_error:
                raise NotFound(f"no queue '{name}' in vhost '{virtual_host.name}'")
            confirm(0)
            return
        check_owner(queue, owner)
        confirm(queue.check_deletion(if_unused=if_unused, if_empty=if_empty))
        dead_letters = personality.dead_letters_deleted and queue.alternate_exchange is None
        dying = queue.clear() if dead_letters else []
        self.remove(queue)
        for message in dying:
            virtual_host.dead_letters.died(queue, message, "deleted")

    def remove(
        self, queue: Queue, why: str = "the queue was deleted", reason: DropReason = "deleted"
    ) -> None:
        """Take a queue out: its bindings go, its subscriptions end and their clients are told.

        What it holds, and what clients hold of it, goes to its alternate exchange if it is deleted and has
        one (queue.delete/orphans); otherwise what it holds is dropped. `why` says in words what has happened,
        `reason` in one.
        """
        virtual_host = self._virtual_host
        if virtual_host.queues.get(queue.name) is not queue:
            return
        del virtual_host.queues[queue.name]
        virtual_host.note("queue deleted", queue=queue.name, detail=why)
        self._bindings.cut_off(queue)
        virtual_host.routing.forget()
        # By tag, as RabbitMQ tells them (measured).
        for subscription in sorted(queue.detach_all(), key=lambda each: each.tag):
            subscription.subscriber.cancelled(subscription)
        if reason == "deleted" and queue.alternate_exchange is not None:
            for message in queue.abandon():
                virtual_host.dead_letters.passed_on(queue, message, "deleted")
        queue.drop_all(reason, why)

    def release(self, owner: object) -> None:
        """The owner has gone: its exclusive queues go too (queue.declare/exclusive-deleted-on-close).

        Those that are freeable and not auto-delete stay, for all. Who owned has ended its subscriptions and
        released what it held before this; what it holds all the same a queue hands on where it goes.
        """
        queues = self._virtual_host.queues.values()
        for queue in [queue for queue in queues if queue.exclusive_owner is owner]:
            if queue.freeable and not queue.auto_delete:
                queue.exclusive_owner = None
            else:
                queue.unused("the connection has gone that the queue was exclusive to")


def check_owner(queue: Queue, owner: object) -> None:
    """May `owner` use the queue?

    Raises:
        ResourceLocked: it is exclusive to somebody else (queue.declare/exclusive-exclusive).
    """
    if queue.exclusive_owner is not None and queue.exclusive_owner is not owner:
        _refuse_locked(queue)


def _refuse_locked(queue: Queue) -> None:
    raise ResourceLocked(
        f"cannot obtain exclusive access to locked queue '{queue.name}' in vhost "
        f"'{queue.virtual_host.name}'. It could be originally declared on another connection or the "
        "exclusive property value does not match that of the original declaration."
    )
