"""The queues of a virtual host: declaration and deletion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fakeamqp.model.arguments.queue_arguments import (
    QUEUE_TYPE,
    QUEUE_TYPES,
    check_dead_letter_exchange,
    queue_options,
    queue_type,
    required_features,
)
from fakeamqp.model.equivalence import check_alternate, check_name, check_same_queue
from fakeamqp.model.errors import AccessRefused, InternalError, PreconditionFailed, ResourceLocked
from fakeamqp.model.limits import check_queue_limit
from fakeamqp.model.operations import STEP, carry_out, in_steps
from fakeamqp.model.queues import Queue, QueueDeclaration, queue_class

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.history import DropReason
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.operations import OperationRequester
    from fakeamqp.model.virtual_host.exchanges import BindingRegister
    from fakeamqp.model.virtual_host.virtual_host import VirtualHost

    Release: TypeAlias = Callable[[Queue, Callable[[], object]], object]


class QueueRegister(dict[str, Queue]):
    """The queues of a virtual host by name. Declares, creates and deletes them."""

    __slots__ = ("_bindings", "_owned", "_virtual_host")

    def __init__(self, virtual_host: VirtualHost, bindings: BindingRegister) -> None:
        super().__init__()
        self._virtual_host = virtual_host
        self._bindings = bindings
        self._owned: dict[object, dict[Queue, None]] = {}
        """By owner, the queues that are or were exclusive to it."""

    def require(self, name: str, owner: object = None) -> Queue:
        """The queue called `name`, for use by `owner`; NotFound, or ResourceLocked as in `check_owner`."""
        queue = self.get(name)
        if queue is None:
            raise self._virtual_host.missing("queue", name)
        check_owner(queue, owner)
        return queue

    def _with_type(self, declaration: QueueDeclaration | None) -> QueueDeclaration:
        virtual_host = self._virtual_host
        personality = virtual_host.state.personality
        return virtual_host.metadata.with_queue_type(personality, declaration or QueueDeclaration())

    def declare(
        self, name: str, declaration: QueueDeclaration | None = None, *, reserved: bool = False
    ) -> Queue:
        """Create the queue, or check that the existing one is equivalent.

        If the name is empty, the broker generates one; `reserved` permits a reserved name.

        Raises:
            AccessRefused: the name is reserved.
            InternalError: the queue needs a deprecated feature that is not permitted.
            ResourceLocked: the queue is exclusive to another owner, or exclusivity differs.
            PreconditionFailed: the existing queue differs, or an argument or the name is illegal.
            NotAllowed, NotFound: see `check_alternate`.
            PreconditionFailed, ResourceError: the limit of queues is reached, by personality.
        """
        declaration = self._with_type(declaration)
        if not name:
            return self.create(self.server_name(declaration), declaration)
        if not reserved:
            self.check_name(name)
        existing = self.get(name)
        if existing is None:
            return self.create(name, declaration)
        check_owner(existing, declaration.owner)
        if declaration.exclusive != (existing.exclusive_owner is not None):
            _refuse_locked(existing)
        check_same_queue(existing, declaration)
        check_alternate(self._virtual_host, declaration.alternate_exchange, existing)
        existing.asked_for()
        return existing

    def create(
        self,
        name: str,
        declaration: QueueDeclaration | None = None,
        *,
        special: type[Queue] | None = None,
        permits_all: bool = False,
        untyped: bool = False,
    ) -> Queue:
        """Create the queue; no queue of this name exists, and reserved names are permitted. See `declare`.

        `special` is the class to use for a classic queue. `permits_all` skips the checks for what the
        personality denies or has removed in 0-9-1. With `untyped` the default type of the virtual host does
        not count: the queue is classic, and its arguments do not say so.
        """
        virtual_host = self._virtual_host
        personality = virtual_host.state.personality
        declaration = (declaration or QueueDeclaration()) if untyped else self._with_type(declaration)
        arguments = declaration.arguments
        where = (name, virtual_host.name)
        check_dead_letter_exchange(*where, arguments, personality)
        default = "classic" if untyped else virtual_host.metadata.default_queue_type or "classic"
        type_name = queue_type(*where, arguments, personality, default)
        options = queue_options(type_name, *where, arguments, personality)
        denies = declaration.owner is not None and not permits_all
        if denies:
            for argument in personality.removed_queue_arguments:
                if argument in arguments:
                    text = f"invalid arg '{argument}' for queue '{name}' in vhost '{virtual_host.name}'"
                    raise InternalError(text)
            if not declaration.durable and not declaration.exclusive:
                virtual_host.state.features.require("transient_nonexcl_queues")
        kind = special if special is not None and type_name == "classic" else queue_class(type_name)
        kind.check_declaration(*where, declaration)
        kind.check_arguments(*where, arguments, personality)
        check_alternate(virtual_host, declaration.alternate_exchange)
        check_queue_limit(virtual_host, name)
        for feature in required_features(type_name, arguments) if denies else ():
            virtual_host.state.features.require(feature)
        queue = kind(virtual_host, name, declaration, options)
        virtual_host.policies.adopt_queue(queue)
        self[name] = queue
        if queue.exclusive_owner is not None:
            self.claim(queue, queue.exclusive_owner)
        connection = getattr(declaration.owner, "name", None)
        virtual_host.report("queue declared", queue=name, type=type_name, connection=connection)
        virtual_host.routing.invalidate()
        return queue

    def server_name(self, declaration: QueueDeclaration) -> str:
        """Generate a name for a queue that is declared without one.

        Permissions are checked under this name, as RabbitMQ does (measured). PreconditionFailed is raised for
        a replicated type, which needs a name of the client's.
        """
        asked = self._with_type(declaration).arguments.get(QUEUE_TYPE)
        kind = queue_class(asked) if isinstance(asked, str) and asked in QUEUE_TYPES else None
        if kind is not None and kind.replicated:
            raise PreconditionFailed(
                f"Cannot declare a server-named queue for type {QUEUE_TYPES[kind.type_name]}"
            )
        return self._virtual_host.state.names.queue()

    def check_name(self, name: str) -> None:
        """AccessRefused for a reserved name (queue.declare/queue-reserved). See `equivalence.check_name`."""
        virtual_host = self._virtual_host
        check_name(virtual_host.state.personality, "queue", name)
        known = virtual_host.state.personality.reserved_queue_redeclarable and name in self
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
        group: object = None,
    ) -> None:
        """Delete a queue and its messages, on a client's behalf.

        `confirm` is called with the number of ready messages, before consumers are notified (RabbitMQ:
        measured on 4.0.5 and 4.3.6). Where the channel `group` requests it, consumers of other channels of
        `owner` are notified before that (RabbitMQ: measured on 4.0.5 and 4.3.6, of classic queues mostly).
        """
        virtual_host = self._virtual_host
        personality = virtual_host.state.personality
        queue = self.get(name)
        if queue is None:
            if personality.deleting_missing_is_an_error:
                raise virtual_host.missing("queue", name)
            confirm(0)
            return
        check_owner(queue, owner)
        count = queue.check_deletion(if_unused=if_unused, if_empty=if_empty)
        before: Sequence[Subscription] = ()
        if group is not None:
            before = [each for each in queue.subscriptions if each.owner is owner and each.group is not group]
        if not before:
            confirm(count)
        dead_letters = personality.dead_letters_deleted and queue.alternate_exchange is None
        dying = queue.clear() if dead_letters else []
        if before:
            self.remove(queue, dead_letters=dying, before=before, confirm=lambda: confirm(count))
        else:
            self.remove(queue, dead_letters=dying)

    def remove(
        self,
        queue: Queue,
        why: str = "the queue was deleted",
        reason: DropReason = "deleted",
        dead_letters: Iterable[Message] = (),
        before: Sequence[Subscription] = (),
        confirm: Callable[[], None] = lambda: None,
    ) -> None:
        """Remove a queue for any reason: remove its bindings, and cancel its consumers.

        Nothing is routed to the queue from now on, and no consumer gets more. If it has many bindings or
        consumers, the bindings are removed and the consumers notified in steps: first those of `before`, then
        `confirm` is called, then the others.

        If the queue is deleted and has an alternate exchange, its ready and unacknowledged messages go there
        (queue.delete/orphans); otherwise its messages are dropped, for `reason`, and `why` explains that. The
        `dead_letters`, which were taken out of it, die with it.
        """
        virtual_host = self._virtual_host
        if self.get(queue.name) is not queue:
            return
        del self[queue.name]
        self._owned.get(queue.exclusive_owner, {}).pop(queue, None)
        virtual_host.report("queue deleted", queue=queue.name, detail=why)
        keep = reason != "deleted" and virtual_host.state.personality.restart_keeps_unbound_exchanges
        much = len(queue.incoming) + len(queue.subscriptions) > STEP
        unbinding = self._bindings.unbinding(queue, keep_sources=keep)
        # By tag, the order in which RabbitMQ notifies them (measured).
        ended = sorted(queue.detach_all(), key=lambda each: each.tag)
        first = set(before)

        def removing() -> Iterator[None]:
            """The steps that follow once the queue is no longer there and its subscriptions have ended."""
            yield from unbinding
            virtual_host.routing.invalidate()
            yield from in_steps([each for each in ended if each in first], _notify)
            confirm()
            yield from in_steps([each for each in ended if each not in first], _notify)
            for deleted in list(queue.watchers.values()):
                deleted()
            if reason == "deleted" and queue.alternate_exchange is not None:
                for message in queue.abandon():
                    virtual_host.dead_letters.passed_on(queue, message, "deleted")
            queue.drop_all(reason, why)
            queue.exclusive_owner = None  # Histories know the queue for longer than its owner is there.
            for message in dead_letters:
                virtual_host.dead_letters.died(queue, message, "deleted")

        virtual_host.routing.invalidate()
        if much:
            virtual_host.state.operations.run(removing())
        else:
            carry_out(removing())

    def claim(self, queue: Queue, owner: object) -> None:
        """Make a queue exclusive to an owner; the caller has checked that it can be."""
        queue.exclusive_owner = owner
        self._owned.setdefault(owner, {})[queue] = None

    def release_owner(
        self,
        owner: object,
        requester: OperationRequester | None = None,
        release: Release = lambda _, free: free(),
    ) -> None:
        """The owner has closed: delete its exclusive queues (queue.declare/exclusive-deleted-on-close).

        Queues that are freeable and not auto-delete stay, and are no longer exclusive. The owner must have
        ended its subscriptions and released its deliveries before. Operations of `requester` that are under
        way come first. `release` carries out the end of each queue.
        """
        self._virtual_host.state.operations.run(self._releasing(owner, release), requester)

    def _releasing(self, owner: object, release: Release) -> Iterator[None]:
        for queue in self._owned.pop(owner, ()):
            release(queue, partial(_free, queue, owner))
            yield


def _free(queue: Queue, owner: object) -> None:
    """End the exclusive use of a queue, if it is still there."""
    if queue.deleted or queue.exclusive_owner is not owner:
        return
    if queue.freeable and not queue.auto_delete:
        queue.exclusive_owner = None
    else:
        queue.unused("the connection that the queue was exclusive to has closed")


def check_owner(queue: Queue, owner: object) -> None:
    """ResourceLocked if the queue is exclusive to another owner (queue.declare/exclusive-exclusive)."""
    if queue.exclusive_owner is not None and queue.exclusive_owner is not owner:
        _refuse_locked(queue)


def _refuse_locked(queue: Queue) -> None:
    raise ResourceLocked(
        f"cannot obtain exclusive access to locked queue '{queue.name}' in vhost "
        f"'{queue.virtual_host.name}'. It could be originally declared on another connection or the "
        "exclusive property value does not match that of the original declaration."
    )


def _notify(ended: Sequence[Subscription]) -> None:
    for subscription in ended:
        subscription.subscriber.cancelled(subscription)
