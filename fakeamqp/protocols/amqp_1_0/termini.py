"""The termini of links: where the messages of an attach come from, or go to.

An address names a queue or exchange that is there, or by version 1 one that is declared then. A dynamic
terminus asks for a queue of its own, which lives as long as the link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from fakeamqp.model.erlang import Atom, Member, pretty, term as text_term
from fakeamqp.model.errors import AccessRefused, ModelError, NotFound, PreconditionFailed, ResourceError
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.model.queues.classic import ClassicQueue
from fakeamqp.protocols.amqp_1_0 import addresses as a
from fakeamqp.protocols.amqp_1_0.addresses import BadAddress, Destination, VersionOne, destination_of
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Array, Described, Symbol
from fakeamqp.protocols.amqp_1_0.replies import LinkFault, Reply, SessionCrash, condition_of
from fakeamqp.protocols.amqp_1_0.values import term

if TYPE_CHECKING:
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_1_0.session import Amqp10Session

OUTCOMES: Final = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
TEMPORARY_QUEUE: Final = "temporary-queue"
VOLATILE_QUEUE: Final = "rabbitmq:volatile-queue"
_LINK_DETACH: Final = Symbol("link-detach")
_MOVE: Final = Symbol("move")
_SETTLED: Final = 1
_LONGEST_NAMES: Final = 150
"""Container id and name of the link are part of the name of a dynamic queue if they are shorter."""


class Resolved(NamedTuple):
    """What a terminus names, and as what it is answered.

    `queue` is that of a source, or the one that was made for a dynamic target. `dynamic` says what goes with
    the link: this queue, or an address of replies, for which the queue stands.
    """

    answer: Any
    destination: Destination | None = None
    queue: Queue | None = None
    dynamic: Literal["queue", "replies"] | None = None


# --- targets -----------------------------------------------------------------------------------------------


def target_of(session: Amqp10Session, body: c.Attach, target: c.Target) -> Resolved:
    """Where a link to the broker goes: without an address each message says it.

    Raises:
        LinkFault: the address has no meaning, is denied, or names what is not there.
        AccessRefused: the user may not publish there.
        EndFault: RabbitMQ crashes.
    """
    if target.dynamic:
        return _dynamic_target(session, body, target)
    address = target.address
    if address is None:
        return Resolved(target)
    try:
        if type(address) is not str:
            raise VersionOne
        destination = destination_of(address)
        if not destination.exchange:
            _check_queue(session, destination.key_for(None))
    except BadAddress:
        raise _refused(session, "bad_address_string", Atom(text_term(address))) from None
    except VersionOne:
        destination = _version_one(session, target, of_target=True).destination
    session.authorise("write", "exchange", destination.exchange)
    check_publishable(session, destination.exchange)
    return Resolved(target, destination)


def check_publishable(session: Amqp10Session, exchange: str) -> None:
    """LinkFault for an exchange that does not exist, or is internal."""
    host = session.virtual_host
    try:
        host.routing.check_publishable(exchange)
    except NotFound as problem:
        raise LinkFault(Reply.NOT_FOUND, problem.text) from None
    except AccessRefused:
        text = f"forbidden to publish to internal exchange '{exchange}' in vhost '{host.name}'"
        raise LinkFault(Reply.UNAUTHORIZED, text) from None
    except ModelError as problem:
        raise LinkFault(condition_of(problem), problem.text) from None


def _check_queue(session: Amqp10Session, name: str) -> None:
    """NotFound without a queue or a live reply address of this name; it may be exclusive to others."""
    host = session.virtual_host
    if name not in host.queues and not (session.choices.replies_directly and name in host.reply_addresses):
        raise host.missing("queue", name)


# --- sources -----------------------------------------------------------------------------------------------


def source_of(session: Amqp10Session, body: c.Attach, source: c.Source) -> Resolved:
    """The queue that a link to the client takes messages from. Errors are those of `target_of`."""
    if source.dynamic:
        return _dynamic_source(session, body, source)
    _check_outcomes(source)
    address = source.address
    if type(address) is not str:
        shown = Atom("undefined" if address is None else term(address))
        raise _refused(session, "bad_address", shown)
    try:
        name = "" if address == a.QUEUES else a.queue_of_source(address)
    except BadAddress:
        raise _refused(session, "bad_address", _utf8(address)) from None
    except VersionOne:
        endpoint = _version_one(session, source, of_target=False)
        if endpoint.queue is None:
            return Resolved(source, queue=_bound_queue(session, source, endpoint.destination))
        name = endpoint.queue
    _check_queue(session, name)
    host = session.virtual_host
    if name in host.queues:
        return Resolved(source, queue=host.queues[name])
    if host.reply_addresses[name].subscription.group is session:
        raise host.missing("queue", name)  # The session cannot ask itself (RabbitMQ: measured on 4.3.6).
    text = f"only creator channel may consume from queue '{name}' in vhost '{host.name}'"
    raise LinkFault(Reply.PRECONDITION_FAILED, text)


def _check_outcomes(source: c.Source) -> None:
    unknown = [each for each in source.outcomes or () if each not in OUTCOMES]
    if unknown:
        raise LinkFault(Reply.NOT_IMPLEMENTED, f"Outcomes not supported: [{','.join(map(term, unknown))}]")


def _bound_queue(session: Amqp10Session, source: c.Source, destination: Destination) -> Queue:
    """A queue of the broker's that is bound to the exchange of a source; it outlives the link."""
    host = session.virtual_host
    exchange, key = destination.exchange, destination.routing_key or ""
    name = host.state.names.queue()
    queue = _declared(session, name, durable=bool(source.durable))
    session.authorise("write", "queue", name)
    session.authorise("read", "exchange", exchange)
    host.exchanges.require(exchange)
    session.authorise_topic("read", exchange, key)
    host.bindings.bind(exchange, queue, key)
    return queue


# --- version 1 ---------------------------------------------------------------------------------------------


def _version_one(
    session: Amqp10Session, terminus: c.Source | c.Target, *, of_target: bool
) -> a.AddressedNode:
    """What an address of version 1 names, where these are permitted; its queue is declared."""
    address = terminus.address
    if not session.broker.features.permitted("amqp_address_v1"):
        raise _refused(session, "amqp_address_v1_not_permitted", _utf8(address))
    if type(address) is not str:
        raise _refused(session, "bad_address", Atom(term(address)))
    try:
        endpoint = a.version_one_endpoint(address, of_target=of_target)
    except a.CrashingAddress as problem:
        raise SessionCrash(f"no terminus is a {problem.kind}") from None
    except a.BadVersionOne as problem:
        if problem.kind is None:
            raise _refused(session, "unknown_destination", problem.shown) from None
        shown = problem.shown or Atom("[]")
        raise _refused(session, "invalid_destination", Atom(problem.kind), shown) from None
    queue = endpoint.queue
    if queue is None:
        session.virtual_host.exchanges.require(endpoint.destination.exchange)
    elif endpoint.declares:
        _declared(session, queue, durable=bool(terminus.durable))
    else:
        _check_queue(session, queue)
    return endpoint


def _declared(session: Amqp10Session, name: str, *, durable: bool, owner: object = None) -> Queue:
    """A classic queue, whatever the default type of the virtual host; an existing one is taken as it is."""
    session.authorise("configure", "queue", name)
    queues = session.virtual_host.queues
    if name in queues:
        return queues[name]
    declaration = QueueDeclaration(owner=owner, durable=durable, exclusive=owner is not None)
    try:
        queue = queues.create(name, declaration, untyped=True)
    except (PreconditionFailed, ResourceError) as problem:  # The limit of queues.
        raise LinkFault(Reply.LIMIT_EXCEEDED, problem.text) from None
    queue.durable = durable  # Also an exclusive one (RabbitMQ: measured on 4.3.6).
    return queue


# --- dynamic nodes -----------------------------------------------------------------------------------------


def _dynamic_target(session: Amqp10Session, body: c.Attach, target: c.Target) -> Resolved:
    if not session.choices.makes_dynamic_nodes:
        raise LinkFault(Reply.NOT_IMPLEMENTED, "Dynamic targets not supported")
    if target.address is not None or TEMPORARY_QUEUE not in (target.capabilities or ()):
        raise _not_dynamic("target", target)
    session.authorise("write", "exchange", "")
    queue = _dynamic_queue(session, body)
    answer = c.Target(**_dynamic_fields(queue.name), durable=0, capabilities=(Symbol(TEMPORARY_QUEUE),))
    return Resolved(answer, Destination("", queue.name), queue, "queue")


def _dynamic_source(session: Amqp10Session, body: c.Attach, source: c.Source) -> Resolved:
    choices, host = session.choices, session.virtual_host
    if not choices.makes_dynamic_nodes:
        raise LinkFault(Reply.NOT_IMPLEMENTED, "Dynamic sources not supported")
    asked = () if source.address is not None else source.capabilities or ()
    queue: Queue
    if VOLATILE_QUEUE in asked and choices.replies_directly and _may_be_volatile(body, source):
        queue = ClassicQueue(host, host.new_reply_address())
        fields = {"durable": source.durable, "capabilities": (Symbol(VOLATILE_QUEUE),)}
    elif TEMPORARY_QUEUE in asked:
        _check_outcomes(source)
        queue = _dynamic_queue(session, body)
        kept = {} if choices.replies_directly else vars(source)
        fields = {**kept, "durable": 0, "capabilities": (Symbol(TEMPORARY_QUEUE),)}
    else:
        raise _not_dynamic("source", source)
    answer = c.Source(**{**fields, **_dynamic_fields(queue.name), "distribution_mode": _MOVE})
    volatile = VOLATILE_QUEUE in answer.capabilities
    if not volatile:
        answer.outcomes = source.outcomes
    return Resolved(answer, queue=queue, dynamic="replies" if volatile else "queue")


def _may_be_volatile(body: c.Attach, source: c.Source) -> bool:
    kept = source.expiry_policy != _LINK_DETACH or source.durable or source.timeout
    return body.snd_settle_mode == _SETTLED and not kept


def _dynamic_queue(session: Amqp10Session, body: c.Attach) -> Queue:
    container, link = session.connection.container_id, body.name
    short = len(container.encode()) + len(link.encode()) < _LONGEST_NAMES
    prefix = f"amq.dyn-{container}-{link}" if short else "amq.dyn.gen"
    name = f"{prefix}-{session.broker.names.token()}"
    return _declared(session, name, durable=True, owner=session.connection)


def _dynamic_fields(name: str) -> dict[str, Any]:
    return {
        "address": a.queue_address(name),
        "expiry_policy": _LINK_DETACH,
        "timeout": 0,
        "dynamic": True,
        "dynamic_node_properties": {
            Symbol("lifetime-policy"): Described(Symbol("amqp:delete-on-close:list"), []),
            Symbol("supported-dist-modes"): Array([_MOVE]),
        },
    }


# --- texts -------------------------------------------------------------------------------------------------


def _refused(session: Amqp10Session, why: str, *shown: Member) -> LinkFault:
    """The error about an address, with RabbitMQ's text."""
    before = session.choices.attach_refusal.format("")
    return LinkFault(Reply.INVALID_FIELD, before + pretty((Atom(why), *shown), before))


def _utf8(address: Any) -> Member:
    return (Atom("utf8"), Atom(text_term(address))) if type(address) is str else Atom(term(address))


def _not_dynamic(kind: str, terminus: c.Composite) -> LinkFault:
    before = f"Dynamic {kind} not supported: "
    members = [Atom(_shown(getattr(terminus, each.attribute))) for each in terminus.FIELDS]
    return LinkFault(Reply.NOT_IMPLEMENTED, before + pretty((Atom(f"'v1_0.{kind}'"), *members), before))


def _shown(value: Any) -> str:
    if value is None:
        return "undefined"
    if isinstance(value, tuple):
        return f"{{array,symbol,[{','.join(map(term, value))}]}}"
    return f"{{utf8,{text_term(value)}}}" if type(value) is str else term(value)
