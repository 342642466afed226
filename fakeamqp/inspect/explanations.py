"""Explains where a message would be routed and why, without publishing it.

The router itself walks through the exchanges; an `Explanation` records the result of each exchange and the
reason. The effect on a queue is derived from its state and its options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from fakeamqp.inspect.errors import nearest
from fakeamqp.inspect.messages import name_of, number_of
from fakeamqp.inspect.topology import find_virtual_host
from fakeamqp.model.errors import ModelError
from fakeamqp.model.exchanges import Exchange, topic_matches
from fakeamqp.model.exchanges.hashing import ConsistentHashExchange, ModulusHashExchange, RandomExchange
from fakeamqp.model.exchanges.system import Service
from fakeamqp.model.messages.message import Message, plain_properties, time_to_live
from fakeamqp.model.routing import ReplyAddress

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.exchange import Binding
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.routing import Outcome
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["Explanation", "Hop", "Route", "explain"]

_MOST_NEAR = 3
_RANDOM_TYPES = ("x-random", "x-local-random")


@dataclass(frozen=True)
class Hop:
    """One exchange on the route.

    Args:
        exchange: the name of the exchange.
        type: its type.
        says: what it does with the message, as sentences, most important first.
        passes_to: the names of the queues and exchanges that it routes the message to, in order.
        near_misses: bindings that do not match and why, the nearest first.
        delay: the seconds for which it delays the message, or None.
        then: the effect of its alternate exchange if no binding matches; otherwise "".
    """

    exchange: str
    type: str
    says: tuple[str, ...]
    passes_to: tuple[str, ...]
    near_misses: tuple[str, ...]
    delay: float | None = None
    then: str = ""


@dataclass(frozen=True)
class Route:
    """One queue that the message would be routed to.

    Args:
        queue: the name of the queue.
        certain: False if an exchange chooses at random.
        does: "refuse" the message, "deliver" it immediately, let it "wait", "append" it to a stream, or
            "answer" a client that waits for a reply; also for a service of the test.
        says: the effect, as sentences.
        consumer: the tag of the consumer that would get it immediately, or None.
        after: the seconds for which an exchange delays the message.
    """

    queue: str
    certain: bool
    does: Literal["refuse", "deliver", "wait", "append", "answer"]
    says: tuple[str, ...]
    consumer: str | None = None
    after: float = 0.0


@dataclass(frozen=True, repr=False)
class Explanation:
    """Where a message would be routed and why. `str()` of it is the explanation as text.

    Args:
        exchange: the exchange of the publish.
        routing_key: the routing key of the publish.
        virtual_host: the virtual host of the publish.
        error: why the publish would fail, or None.
        hops: the exchanges on the route, in order.
        routes: the queues of the route.
        mandatory: whether it would be published as mandatory.
        delays: the exchanges that would delay it, as sentences.
    """

    exchange: str
    routing_key: str
    virtual_host: str
    error: str | None = None
    hops: tuple[Hop, ...] = ()
    routes: tuple[Route, ...] = ()
    mandatory: bool = False
    delays: tuple[str, ...] = ()

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of the queues that it would be routed to immediately, in order."""
        return tuple(each.queue for each in self.routes if each.certain and not each.after)

    @property
    def possible_queues(self) -> tuple[str, ...]:
        """The names of the queues that exchanges may choose at random."""
        return tuple(each.queue for each in self.routes if not each.certain and not each.after)

    @property
    def later_queues(self) -> tuple[str, ...]:
        """The names of the queues that it would be routed to after a delay, if no binding changes."""
        return tuple(each.queue for each in self.routes if each.after)

    @property
    def unroutable(self) -> bool:
        """Whether no queue would get it, neither immediately nor at random nor after a delay."""
        return self.error is None and not self.routes and not self.delays

    @property
    def returned(self) -> bool:
        """Whether it would be returned to its publisher."""
        return self.error is None and self.mandatory and not self.queues and not self.possible_queues

    def __str__(self) -> str:
        where = "" if self.virtual_host == "/" else f" in virtual host {self.virtual_host!r}"
        lines = [f"message for exchange {self.exchange!r} with routing key {self.routing_key!r}{where}"]
        if self.error is not None:
            return "\n".join([*lines, f"  cannot be published: {self.error}"])
        for hop in self.hops:
            lines.append(f"  exchange {hop.exchange!r} ({hop.type}): {hop.says[0]}")
            lines += [f"    {said}" for said in hop.says[1:]]
            lines += [f"    no match: {said}" for said in hop.near_misses[:_MOST_NEAR]]
            if len(hop.near_misses) > _MOST_NEAR:
                lines.append(f"    ... and {len(hop.near_misses) - _MOST_NEAR} more that do not match")
            if hop.then:
                lines.append(f"    {hop.then}")
        for route in self.routes:
            when = f", after {route.after:g} s" if route.after else ""
            lines.append(f"  queue {route.queue!r}{when}{_random(route.certain)}: {'; '.join(route.says)}")
        return "\n".join([*lines, f"  so it is {self._result()}"])

    def _result(self) -> str:
        if self.unroutable:
            lost = (
                "returned to its publisher (312 NO_ROUTE)"
                if self.mandatory
                else "dropped silently, but confirmed"
            )
            return f"unroutable: {lost}"
        said = []
        if self.queues:
            said.append("routed to " + ", ".join(map(repr, self.queues)))
        if self.possible_queues:
            perhaps = "routed to one or more of " + ", ".join(map(repr, self.possible_queues))
            said.append(f"{perhaps}, or to none" if self._random_choice_may_lead_nowhere() else perhaps)
        said += self.delays
        if self.returned:
            said.append("returned meanwhile (312 NO_ROUTE)")
        refused = [each.queue for each in self.routes if each.does == "refuse" and each.certain]
        if refused:
            said.append(f"refused by {', '.join(map(repr, refused))}, so that a confirm is a nack")
        return "; ".join(said)

    def _random_choice_may_lead_nowhere(self) -> bool:
        ends = {hop.exchange for hop in self.hops if not hop.passes_to and not hop.then and hop.delay is None}
        return any(not ends.isdisjoint(hop.passes_to) for hop in self.hops if hop.type in _RANDOM_TYPES)

    def __repr__(self) -> str:
        return f"<explanation: {self}>"


def explain(
    state: BrokerState,
    exchange: str,
    routing_key: str,
    headers: Mapping[str, Any] | None = None,
    *,
    body: bytes | str = b"",
    virtual_host: str = "/",
    mandatory: bool = False,
    **properties: Any,
) -> Explanation:
    """Explain where a message would be routed now; see `Inspection.explain`."""
    host = find_virtual_host(state, virtual_host)
    if headers is not None:
        properties["headers"] = dict(headers)
    made = plain_properties(**properties)
    octets = body.encode() if isinstance(body, str) else bytes(body)
    message = Message(exchange, routing_key, made, octets)
    message.secured = True
    told = Explanation(exchange, routing_key, virtual_host, mandatory=mandatory)
    try:
        if made.expiration is not None and state.personality.expiration_is_ttl:
            message.expiry = time_to_live(str(made.expiration))
        walk = _Walk(host)
        sent, possible = host.routing.dry_run(message, walk.ask)
        certain = host.routing.dry_run(message, _without_random)[1]
    except ModelError as error:
        condition = str(getattr(error, "condition", type(error).__name__)).upper().replace("-", "_")
        hint = "" if exchange in host.exchanges else nearest(exchange, host.exchanges)
        return replace(told, error=f"{condition}: {error}{hint}")
    routes = list(_routes(host, sent, possible, certain))
    for delay in possible.delays:
        routes += _later(host, walk, sent, delay.exchange, delay.seconds)
    return replace(
        told,
        hops=tuple(walk.hops),
        routes=tuple(routes),
        delays=tuple(f"{each}{_random(each in certain.delays)}" for each in possible.delays),
    )


def _random(certain: bool) -> str:
    return "" if certain else ", if chosen at random"


# --- the route through the exchanges ----------------------------------------------------------------------


def _without_random(
    exchange: Exchange, keys: Sequence[str], message: Message, *, delayed: bool = True
) -> tuple[float, Iterable[Any]]:
    """Routes like the exchanges, except that random choices lead nowhere."""
    delay = exchange.delay(message) if delayed else 0.0
    if delay:
        return delay, ()
    chooser = exchange.chooser
    if isinstance(chooser, RandomExchange):
        among = tuple(dict.fromkeys(chooser.candidates))
        return 0.0, among if len(among) < 2 else (exchange,)
    return 0.0, exchange.route(keys, message)


class _Walk:
    """Routes like the exchanges, with all candidates of random choices, and records the hops."""

    def __init__(self, host: VirtualHost, *, delayed: bool = True) -> None:
        self.hops: list[Hop] = []
        self._last: set[str] = set()
        """Exchanges whose alternate exchange is not tried."""
        self._host = host
        self._delayed = delayed

    def ask(self, exchange: Exchange, keys: Sequence[str], message: Message) -> tuple[float, Iterable[Any]]:
        delay = exchange.delay(message) if self._delayed else 0.0
        if delay:
            keeps = f"keeps it for {delay:g} s and publishes it by the bindings there are then"
            self.hops.append(Hop(exchange.name, exchange.type_name, (keeps,), (), (), delay))
            return delay, ()
        chooser = exchange.chooser
        found = tuple(
            chooser.candidates if isinstance(chooser, RandomExchange) else exchange.route(keys, message)
        )
        if exchange.name:
            says, near = self._said(exchange, chooser, keys, message, found)
        else:
            says, near = self._said_by_default(chooser, keys, message), []
        then = ""
        if not found and exchange.alternate_exchange is not None and exchange.name in self._last:
            then = f"its alternate exchange {exchange.alternate_exchange!r} is not tried: it is one itself"
        elif not found and exchange.alternate_exchange is not None:
            if exchange.alternate_is_last and exchange.alternate_exchange not in {
                hop.exchange for hop in self.hops
            }:
                self._last.add(exchange.alternate_exchange)
            there = exchange.alternate_exchange in self._host.exchanges
            then = f"so it goes to the alternate exchange {exchange.alternate_exchange!r}"
            then += "" if there else ", which does not exist"
        names = tuple(dict.fromkeys(each.name for each in found))
        self.hops.append(Hop(exchange.name, exchange.type_name, tuple(says), names, tuple(near), then=then))
        return 0.0, found

    def _said(
        self,
        exchange: Exchange,
        chooser: Exchange,
        keys: Sequence[str],
        message: Message,
        found: Sequence[Any],
    ) -> tuple[list[str], list[str]]:
        if not exchange.bindings:
            return ["nothing is bound to it"], []
        if isinstance(chooser, RandomExchange):
            return [f"chosen at random: {', '.join(map(_end, dict.fromkeys(found)))}"], []
        if isinstance(chooser, ConsistentHashExchange):
            if not found:
                return ["nothing is left on its ring"], []
            place = f"bucket {chooser.bucket(keys, message) + 1} of {chooser.buckets}"
            return [
                f"the hash of its {chooser.hashed} falls into {place}, which belongs to {_end(found[0])}"
            ], []
        if isinstance(chooser, ModulusHashExchange):
            count = len(exchange.bindings)
            return [f"the hash of its routing key chooses {_end(found[0])} from {count} bindings"], []
        explained = explain_bindings(chooser, keys, message)
        ways = [f"-> {_end(each.binding.destination)}: {each.why}" for each in explained if not each.distance]
        others = sorted((each for each in explained if each.distance), key=lambda each: each.distance)
        near = [f"{_binding_words(each.binding)}: {each.why}" for each in others]
        if ways:
            return [
                f"{len(ways)} of {len(explained)} bindings match{'es' if len(ways) == 1 else ''}",
                *ways,
            ], near
        what = "its headers" if chooser.type_name == "headers" else _or(keys)
        return [f"no binding matches {what}; nearest: {near[0]}"], near[1:]

    def _said_by_default(self, chooser: Exchange, keys: Sequence[str], message: Message) -> list[str]:
        says = []
        for key in keys:
            if key in self._host.queues:
                says.append(f"routing key {key!r} is the name of a queue")
            elif key in self._host.reply_addresses:
                says.append(f"routing key {key!r} is the address of a client that waits for a reply")
            else:
                says.append(f"there is no queue {key!r}{nearest(key, self._host.queues)}")
        explained = explain_bindings(chooser, keys, message)
        ways = (f"-> {_end(each.binding.destination)}: {each.why}" for each in explained if not each.distance)
        return [*says, *ways]


def _end(destination: Any) -> str:
    return f"{getattr(destination, 'kind', 'reply address')} {destination.name!r}"


def _binding_words(binding: Binding) -> str:
    what = dict(binding.arguments) if binding.source.chooser.type_name == "headers" else binding.routing_key
    return f"{what!r} -> {_end(binding.destination)}"


def _later(host: VirtualHost, walk: _Walk, message: Message, name: str, seconds: float) -> Iterable[Route]:
    """The routes of a message after a delay, by the present bindings."""
    first = host.exchanges[name]
    after = _Walk(host, delayed=False)
    outcome = host.routing.dry_run(message, after.ask, first)[1]
    certain = host.routing.dry_run(message, partial(_without_random, delayed=False), first)[1]
    walk.hops += after.hops
    return _routes(host, message, outcome, certain, seconds)


# --- what queues do ---------------------------------------------------------------------------------------


def _routes(
    host: VirtualHost, message: Message, possible: Outcome, certain: Outcome, after: float = 0.0
) -> Iterable[Route]:
    for queue in possible.queues:
        yield _route(host, queue, message, queue in certain.queues, after)


def _route(host: VirtualHost, queue: Any, message: Message, certain: bool, after: float) -> Route:
    def route(does: Any, *says: str, consumer: str | None = None) -> Route:
        return Route(queue.name, certain, does, says, consumer, after)

    if isinstance(queue, ReplyAddress):
        says = "goes directly to the client that waits for a reply"
        return route("answer", says, consumer=queue.subscription.tag)
    if isinstance(queue, Service):
        return route("answer", "handed to the service of the test")
    if queue.keeps_delivered:
        readers = len(queue.subscriptions)
        return route("append", f"appended to the stream; consumers that read it: {readers}")
    if queue.would_refuse(message):
        full = f"refused, because the queue is full ({_limits(queue)}, overflow {queue.options.overflow})"
        if queue.options.overflow == "reject-publish-dlx":
            return route("refuse", full, _dead_letters(host, queue, "so it"))
        return route("refuse", full)
    if queue.options.dead_letter_exchange is None:
        afterwards = []
    else:
        afterwards = [_dead_letters(host, queue, "if rejected it")]
    taker = queue.next_taker(message)
    if taker is None:
        return route("wait", *_waiting(host, queue, message), *afterwards)
    where = f"on {name_of(taker.owner)} channel {number_of(taker.group)}"
    delivered = f"delivered at once to consumer {taker.tag!r} {where}"
    return route("deliver", delivered, *afterwards, consumer=taker.tag)


def _waiting(host: VirtualHost, queue: Queue, message: Message) -> Iterable[str]:
    ready = len(queue.ready)
    others = {0: "first", 1: "behind 1 message"}.get(ready, f"behind {ready} messages")
    consumers = len(queue.subscriptions)
    if not consumers:
        yield f"waits {others}; there is no consumer"
    else:
        alone = ", of which one at a time is active" if queue.options.single_active_consumer else ""
        more = "consumer has" if consumers == 1 else "consumers have"
        yield f"waits {others}; its {consumers} {more} no credit left{alone}"
    if _overflows(queue, message):
        first = "the message itself" if not ready else "the message at its head"
        yield f"the queue is full ({_limits(queue)}): {_dead_letters(host, queue, first)}"
    shortest = min(
        (each for each in (queue.options.message_ttl, message.expiry) if each is not None), default=None
    )
    if shortest is not None:
        yield _dead_letters(host, queue, f"unless delivered within {shortest:g} s it")


def _overflows(queue: Queue, message: Message) -> bool:
    options = queue.options
    octets = (
        sum(len(each.message.body) for each in queue.ready) if options.max_length_bytes is not None else 0
    )
    return options.overflow == "drop-head" and (
        (options.max_length is not None and len(queue.ready) >= options.max_length)
        or (options.max_length_bytes is not None and octets + len(message.body) > options.max_length_bytes)
    )


def _limits(queue: Queue) -> str:
    options = queue.options
    said = []
    if options.max_length is not None:
        said.append(f"{len(queue.ready)} of at most {options.max_length} messages")
    if options.max_length_bytes is not None:
        said.append(f"at most {options.max_length_bytes} bytes")
    return ", ".join(said)


def _dead_letters(host: VirtualHost, queue: Queue, what: str) -> str:
    """What happens to a message that the queue dead-letters."""
    options = queue.options
    target = options.dead_letter_exchange
    if target is None:
        return f"{what} is dropped"
    if target not in host.exchanges:
        return f"{what} is dropped, because dead-letter exchange {target!r} does not exist"
    key = options.dead_letter_routing_key
    by = "its own routing key" if key is None else f"routing key {key!r}"
    return f"{what} is dead-lettered through exchange {target!r} with {by}"


# --- bindings ---------------------------------------------------------------------------------------------


class BindingExplanation(NamedTuple):
    """Why one binding matches, or what differs; `distance` is 0 if it matches."""

    binding: Binding
    why: str
    distance: float


def explain_bindings(exchange: Exchange, keys: Sequence[str], message: Message) -> list[BindingExplanation]:
    """An explanation for each binding of an exchange; none for types that choose by a hash or at random."""
    explainer = _EXPLAINERS.get(exchange.type_name)
    if explainer is None:
        return []
    return [
        BindingExplanation(each, *explainer(exchange, each, keys, message))
        for each in exchange.bindings.values()
    ]


def _direct(exchange: Exchange, binding: Binding, keys: Sequence[str], message: Message) -> tuple[str, float]:
    if binding.routing_key in keys:
        return "the binding key is the routing key", 0
    return f"{binding.routing_key!r} is not {_or(keys)}", 1 - _likeness(binding.routing_key, keys[0]) + 0.01


def _topic(exchange: Exchange, binding: Binding, keys: Sequence[str], message: Message) -> tuple[str, float]:
    pattern = binding.routing_key
    for key in keys:
        if topic_matches(pattern, key):
            taken = [
                f"{word} = {'.'.join(found)!r}"
                for word, found in _aligned(pattern, key)
                if word in ("*", "#")
            ]
            said = f" ({', '.join(taken)})" if taken else ""
            return f"{pattern!r} matches {key!r}{said}", 0
    words, wanted = _words(keys[0]), _words(pattern)
    why = ""
    if "#" not in wanted and len(words) != len(wanted):
        plural = "" if len(wanted) == 1 else "s"
        why = f"it requires {len(wanted)} word{plural}, and {keys[0]!r} has {len(words)}"
    elif "#" not in wanted:
        wrong = [
            f"word {place} is {word!r}, not {asked!r}"
            for place, (word, asked) in enumerate(zip(words, wanted, strict=True), 1)
            if asked not in ("*", word)
        ]
        why = " and ".join(wrong)
    why = why or f"{keys[0]!r} does not match it"
    return why, _edits(wanted, words) + 1 - _likeness(pattern, keys[0])


def _headers(exchange: Any, binding: Binding, keys: Sequence[str], message: Message) -> tuple[str, float]:
    unmet = exchange.differences(binding, message)
    asked = [name for name in binding.arguments if name != "x-match"]
    said = [_header_said(name, binding.arguments[name], message) for name in unmet]
    if exchange.asks_for_any(binding):
        met = exchange.asked(binding) - len(unmet)
        if met:
            return f"{met} of its headers match, and x-match is any", 0
        return f"x-match is any, but {'; '.join(said) or 'it requires no header'}", 1 + len(unmet)
    if not unmet:
        return ("all its headers match" if asked else "it requires no header"), 0
    return "; ".join(said), float(len(unmet))


_EXPLAINERS: dict[str, Callable[[Any, Binding, Sequence[str], Message], tuple[str, float]]] = {
    "direct": _direct,
    "fanout": lambda *_: ("a fanout exchange routes to every binding", 0),
    "topic": _topic,
    "headers": _headers,
}


# --- words ------------------------------------------------------------------------------------------------


def _header_said(name: str, wanted: object, message: Message) -> str:
    if name not in message.headers:
        return f"header {name!r} is missing"
    return f"header {name!r} is {message.headers[name]!r}, not {wanted!r}"


def _or(keys: Sequence[str]) -> str:
    return " or ".join(map(repr, keys))


def _likeness(one: str, two: str) -> float:
    """From 0 to 1."""
    return SequenceMatcher(None, one, two).ratio()


def _words(key: str) -> list[str]:
    return key.split(".") if key else []


def _aligned(pattern: str, key: str) -> list[tuple[str, list[str]]]:
    """Each word of a matching pattern, with the words of the key that it matches."""
    wanted, words = _words(pattern), _words(key)
    fits = [[False] * (len(words) + 1) for _ in range(len(wanted) + 1)]
    fits[-1][-1] = True
    for row in range(len(wanted) - 1, -1, -1):
        for column in range(len(words), -1, -1):
            here = column < len(words)
            if wanted[row] == "#":
                fits[row][column] = fits[row + 1][column] or (here and fits[row][column + 1])
            else:
                fits[row][column] = here and wanted[row] in ("*", words[column]) and fits[row + 1][column + 1]
    aligned = []
    column = 0
    for row, word in enumerate(wanted):
        start = column
        if word != "#":
            column += 1
        else:
            while not fits[row + 1][column]:
                column += 1
        aligned.append((word, words[start:column]))
    return aligned


def _edits(wanted: Sequence[str], words: Sequence[str]) -> float:
    """The number of wrong, missing and additional words of a key, compared with a pattern."""
    above: list[float] = [float(count) for count in range(len(words) + 1)]
    for asked in wanted:
        free = asked == "#"
        row = [above[0] + (0 if free else 1)]
        for column, word in enumerate(words, 1):
            if free:
                row.append(min(above[column], row[-1]))
            else:
                change = above[column - 1] + (0 if asked in ("*", word) else 1)
                row.append(min(change, above[column] + 1, row[-1] + 1))
        above = row
    return above[-1]
