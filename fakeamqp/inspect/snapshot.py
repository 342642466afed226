"""The topology as comparable text, and as diagrams.

Incidental details are left out or normalized: the order of declarations, generated names and consumer tags,
connections. So equal topologies give equal texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeamqp.errors import printable
from fakeamqp.inspect.frozen import FrozenDict, frozen
from fakeamqp.inspect.topology import select_virtual_hosts

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.exchanges.exchange import Binding
    from fakeamqp.model.policies import Policy
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = [
    "BindingEntry",
    "ExchangeEntry",
    "QueueEntry",
    "Topology",
    "VirtualHostEntry",
    "topology",
]

_GENERATED = "amq.gen-"
_generated_tag = re.compile(r"amq\.ctag-.*|ctag\d+\.[0-9a-f]{32}", re.DOTALL).fullmatch


@dataclass(frozen=True, order=True)
class BindingEntry:
    """One binding of an exchange; `kind` is that of the destination: "queue" or "exchange"."""

    routing_key: str
    kind: str
    destination: str
    arguments: str

    def __str__(self) -> str:
        arguments = f" {self.arguments}" if self.arguments else ""
        return f"{quoted(self.routing_key)} -> {self.kind} {quoted(self.destination)}{arguments}"


@dataclass(frozen=True)
class ExchangeEntry:
    """One exchange. `alternate_exists` is None without an alternate exchange."""

    name: str
    type: str
    flags: tuple[str, ...]
    arguments: FrozenDict
    policies: tuple[str, ...]
    alternate_exchange: str | None
    alternate_exists: bool | None
    bindings: tuple[BindingEntry, ...]
    delayed: int | None = None

    def lines(self) -> list[str]:
        """The lines of text about the exchange."""
        head = " ".join([f"exchange {quoted(self.name)}", self.type, *self.flags])
        lines = [head, *_indented(_settings(self.arguments, self.policies))]
        if self.alternate_exchange is not None:
            lines.append(
                f"  otherwise -> {_exchange_words(self.alternate_exchange, bool(self.alternate_exists))}"
            )
        if self.delayed is not None:
            lines.append(f"  {self.delayed} delayed")
        return [*lines, *_indented(str(binding) for binding in self.bindings)]


@dataclass(frozen=True)
class QueueEntry:
    """One queue. `dead_letter_exists` is None without a dead-letter exchange.

    `arguments` does not contain the queue type. `ready`, `unacked` and `consumers` are None if not requested.
    """

    name: str
    type: str
    flags: tuple[str, ...]
    arguments: FrozenDict
    policies: tuple[str, ...]
    dead_letter_exchange: str | None
    dead_letter_routing_key: str | None
    dead_letter_exists: bool | None
    ready: int | None = None
    unacked: int | None = None
    consumers: tuple[str, ...] | None = None

    def lines(self) -> list[str]:
        """The lines of text about the queue."""
        head = " ".join([f"queue {quoted(self.name)}", self.type, *self.flags])
        lines = [head, *_indented(_settings(self.arguments, self.policies))]
        if self.dead_letter_exchange is not None:
            key = self.dead_letter_routing_key
            by = "" if key is None else f" by {quoted(key)}"
            where = _exchange_words(self.dead_letter_exchange, bool(self.dead_letter_exists))
            lines.append(f"  dead letters -> {where}{by}")
        if self.ready is not None:
            lines.append(f"  {self.ready} ready, {self.unacked} unacked")
        return [*lines, *_indented(self.consumers or ())]


@dataclass(frozen=True)
class VirtualHostEntry:
    """One virtual host, with its exchanges and queues by name."""

    name: str
    exchanges: tuple[ExchangeEntry, ...]
    queues: tuple[QueueEntry, ...]
    policies: tuple[str, ...]

    def lines(self) -> list[str]:
        """The lines of text about the virtual host."""
        lines = [f"virtual host {quoted(self.name)}"]
        for exchange in self.exchanges:
            lines += _indented(exchange.lines())
        for queue in self.queues:
            lines += _indented(queue.lines())
        return [*lines, *_indented(self.policies)]


@dataclass(frozen=True, repr=False)
class Topology:
    """Exchanges, bindings, queues and policies at one moment. Its text is stable and can be compared.

    Queues with generated names (`amq.gen-…`) are numbered by their settings and bindings. Predeclared
    exchanges are included only if they have bindings.
    """

    virtual_hosts: tuple[VirtualHostEntry, ...]

    def __str__(self) -> str:
        return "\n".join(line for virtual_host in self.virtual_hosts for line in virtual_host.lines())

    def __repr__(self) -> str:
        return f"<topology:\n{self}\n>"

    def mermaid(self) -> str:
        """A flowchart for Mermaid, as in a `mermaid` block of a Markdown page."""
        lines = ["flowchart LR"]
        shapes = {"exchange": '{{{{"{0}"}}}}', "queue": '[("{0}")]', "missing": '("{0}")'}
        for number, graph in enumerate(self._graphs()):
            lines.append(f'  subgraph h{number}["{_entities(graph.title)}"]')
            for node in graph.nodes:
                label = "<br/>".join(map(_entities, node.lines))
                lines.append(f"    {node.id}{shapes[node.kind].format(label)}")
            for edge in graph.edges:
                arrow = "-.->" if edge.dashed else "-->"
                label = f'|"{_entities(edge.label)}"|' if edge.label else ""
                lines.append(f"    {edge.start} {arrow}{label} {edge.end}")
            lines.append("  end")
        return "\n".join(lines) + "\n"

    def graphviz(self) -> str:
        """A graph in the DOT language, for Graphviz: `dot -Tsvg`."""
        lines = ["digraph topology {", "  rankdir=LR;", '  node [fontname="Helvetica"];']
        shapes = {"exchange": "hexagon", "queue": "cylinder", "missing": "plaintext"}
        for number, graph in enumerate(self._graphs()):
            lines += [f"  subgraph cluster_{number} {{", f'    label="{_escaped(graph.title)}";']
            for node in graph.nodes:
                label = "\\n".join(map(_escaped, node.lines))
                lines.append(f'    {node.id} [label="{label}", shape={shapes[node.kind]}];')
            for edge in graph.edges:
                style = ", style=dashed" if edge.dashed else ""
                lines.append(f'    {edge.start} -> {edge.end} [label="{_escaped(edge.label)}"{style}];')
            lines.append("  }")
        return "\n".join([*lines, "}"]) + "\n"

    def _graphs(self) -> Iterator[_Graph]:
        for number, virtual_host in enumerate(self.virtual_hosts):
            yield _graph(virtual_host, f"{number}_" if len(self.virtual_hosts) > 1 else "")


def topology(
    state: BrokerState,
    virtual_host: str | None = None,
    *,
    counts: bool = False,
    consumers: bool = False,
    predeclared: bool = False,
) -> Topology:
    """The topology of one virtual host, or (None) of all; see `Inspection.topology`."""
    chosen = sorted(select_virtual_hosts(state, virtual_host), key=lambda each: each.name)
    return Topology(tuple(_virtual_host(each, counts, consumers, predeclared) for each in chosen))


def _virtual_host(
    virtual_host: VirtualHost, counts: bool, consumers: bool, predeclared: bool
) -> VirtualHostEntry:
    queues = [_queue(virtual_host, queue, counts, consumers) for queue in virtual_host.queues.values()]
    names = _names(virtual_host, queues)
    exchanges = [
        _exchange(virtual_host, exchange, counts, names)
        for exchange in virtual_host.exchanges.values()
        if predeclared or exchange.bindings or exchange.incoming or not _is_predeclared(exchange)
    ]
    queues = [
        replace(queue, name=names[queue.name], dead_letter_routing_key=_renamed(queue, names))
        for queue in queues
    ]
    policies = [
        *(_policy("policy", each) for each in virtual_host.policies.policies.values()),
        *(_policy("operator policy", each) for each in virtual_host.policies.operator_policies.values()),
    ]
    return VirtualHostEntry(
        virtual_host.name,
        tuple(sorted(exchanges, key=lambda each: each.name)),
        tuple(sorted(queues, key=_by_name)),
        tuple(sorted(policies)),
    )


def _is_predeclared(exchange: Exchange) -> bool:
    return not exchange.name or exchange.name.startswith("amq.")


def _by_name(queue: QueueEntry) -> tuple[bool, int, str]:
    generated = queue.name.startswith(_GENERATED)
    return generated, len(queue.name) if generated else 0, queue.name


def _names(virtual_host: VirtualHost, queues: Iterable[QueueEntry]) -> Mapping[str, str]:
    """The name of each queue. Generated names are numbered, in an order independent of generated names."""
    generated = [queue for queue in queues if queue.name.startswith(_GENERATED)]

    def signature(queue: QueueEntry) -> list[str]:
        key = queue.dead_letter_routing_key
        shown = replace(queue, name="", dead_letter_routing_key=None if key == queue.name else key)
        incoming = (_binding(each, {queue.name: ""}) for each in virtual_host.queues[queue.name].incoming)
        sources = (each.source.name for each in virtual_host.queues[queue.name].incoming)
        return shown.lines() + sorted(
            f"{source} {each}" for source, each in zip(sources, incoming, strict=True)
        )

    names = _Names()
    for number, queue in enumerate(sorted(generated, key=signature), 1):
        names[queue.name] = f"{_GENERATED}{number}"
    return names


class _Names(dict[str, str]):
    """New names for some queues; others keep theirs."""

    def __missing__(self, name: str) -> str:
        return name


def _renamed(queue: QueueEntry, names: Mapping[str, str]) -> str | None:
    """The dead-letter routing key, renamed like the queue if it is the name of one."""
    key = queue.dead_letter_routing_key
    return names[key] if key is not None and queue.dead_letter_exchange == "" else key


def _exchange(
    virtual_host: VirtualHost, exchange: Exchange, counts: bool, names: Mapping[str, str]
) -> ExchangeEntry:
    alternate = exchange.alternate_exchange
    return ExchangeEntry(
        exchange.name,
        exchange.type_name,
        tuple(
            flag.replace("_", "-")
            for flag in ("durable", "auto_delete", "internal")
            if getattr(exchange, flag)
        ),
        frozen(exchange.arguments),
        _policies(exchange),
        alternate,
        None if alternate is None else alternate in virtual_host.exchanges,
        tuple(sorted(_binding(binding, names) for binding in exchange.bindings.values())),
        virtual_host.delays.count(exchange.name)
        if counts and exchange.type_name == "x-delayed-message"
        else None,
    )


def _queue(virtual_host: VirtualHost, queue: Queue, counts: bool, consumers: bool) -> QueueEntry:
    flags = {
        "durable": queue.durable,
        "exclusive": queue.exclusive_owner is not None,
        "auto-delete": queue.auto_delete,
    }
    target = queue.options.dead_letter_exchange
    return QueueEntry(
        queue.name,
        queue.type_name,
        tuple(flag for flag, there in flags.items() if there),
        frozen({name: value for name, value in queue.arguments.items() if name != "x-queue-type"}),
        _policies(queue),
        target,
        None if target is None else queue.options.dead_letter_routing_key,
        None if target is None else target in virtual_host.exchanges,
        len(queue.ready) if counts else None,
        len(queue.unacked) if counts else None,
        tuple(sorted(_consumer(each) for each in queue.subscriptions)) if consumers else None,
    )


def _consumer(subscription: Subscription) -> str:
    words = ["consumer"]
    if not _generated_tag(subscription.tag):
        words.append(quoted(subscription.tag))
    words += [
        word
        for word, there in (("no-ack", subscription.no_ack), ("exclusive", subscription.exclusive))
        if there
    ]
    window = min((each.message_limit for each in subscription.credits if each.message_limit), default=0)
    if window:
        words.append(f"prefetch {window}")
    return " ".join([*words, *([_table(subscription.arguments)] if subscription.arguments else [])])


def _binding(binding: Binding, names: Mapping[str, str]) -> BindingEntry:
    kind, name = binding.destination.kind, binding.destination.name
    arguments = _table(binding.arguments) if binding.arguments else ""
    return BindingEntry(
        binding.routing_key, kind, names.get(name, name) if kind == "queue" else name, arguments
    )


def _policies(owner: Queue | Exchange) -> tuple[str, ...]:
    named = (("policy", owner.policy), ("operator policy", owner.operator_policy))
    return tuple(f"{word} {quoted(policy.name)}" for word, policy in named if policy is not None)


def _policy(word: str, policy: Policy) -> str:
    more = [] if policy.apply_to == "all" else [f"for {policy.apply_to}"]
    if policy.priority:
        more.append(f"priority {policy.priority:g}")
    definition = _table(policy.definition)
    return " ".join([f"{word} {quoted(policy.name)}", quoted(policy.pattern), "->", definition, *more])


# --- words ------------------------------------------------------------------------------------------------


def _settings(arguments: Mapping[str, Any], policies: Iterable[str]) -> list[str]:
    return [*(f"{printable(name)} = {plain(arguments[name])}" for name in sorted(arguments)), *policies]


def _exchange_words(name: str, exists: bool) -> str:
    return f"exchange {quoted(name)}" + ("" if exists else ", which does not exist")


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _table(table: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{printable(str(name))}: {plain(table[name])}" for name in sorted(table)) + "}"


def plain(value: object) -> str:
    """A field value in one line, in a canonical form."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        return _table(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(plain, value)) + "]"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value)


def quoted(text: str) -> str:
    """A name in quotes, in one line, with invalid bytes escaped."""
    said = json.dumps(text, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
    return said if said.isprintable() else json.dumps(text)


# --- diagrams ---------------------------------------------------------------------------------------------


class _Node(NamedTuple):
    """`kind` is "exchange", "queue" or "missing"; each of `lines` is one line of its label."""

    id: str
    kind: str
    lines: tuple[str, ...]


class _Edge(NamedTuple):
    """`dashed`: the edge is not a binding, but leads to an alternate or dead-letter exchange."""

    start: str
    end: str
    label: str
    dashed: bool


class _Graph(NamedTuple):
    title: str
    nodes: list[_Node]
    edges: list[_Edge]


def _graph(virtual_host: VirtualHostEntry, prefix: str) -> _Graph:
    exchanges = {each.name: f"e{prefix}{number}" for number, each in enumerate(virtual_host.exchanges)}
    queues = {each.name: f"q{prefix}{number}" for number, each in enumerate(virtual_host.queues)}
    nodes = [
        *(
            _Node(exchanges[each.name], "exchange", (each.name or "(default)", each.type))
            for each in virtual_host.exchanges
        ),
        *(
            _Node(queues[each.name], "queue", (each.name, *(() if each.type == "classic" else (each.type,))))
            for each in virtual_host.queues
        ),
    ]
    edges = [
        _Edge(
            exchanges[exchange.name],
            (queues if binding.kind == "queue" else exchanges)[binding.destination],
            " ".join(part for part in (binding.routing_key, binding.arguments) if part),
            False,
        )
        for exchange in virtual_host.exchanges
        for binding in exchange.bindings
    ]

    def exchange_node(name: str, exists: bool) -> str:
        """The node of an exchange, which is added if it does not exist yet."""
        if name not in exchanges:
            exchanges[name] = f"x{prefix}{len(nodes)}"
            what = "exchange" if exists else "missing"
            lines = (name or "(default)",) if exists else (name, "does not exist")
            nodes.append(_Node(exchanges[name], what, lines))
        return exchanges[name]

    for exchange in virtual_host.exchanges:
        if exchange.alternate_exchange is not None:
            end = exchange_node(exchange.alternate_exchange, bool(exchange.alternate_exists))
            edges.append(_Edge(exchanges[exchange.name], end, "otherwise", True))
    for queue in virtual_host.queues:
        target, key = queue.dead_letter_exchange, queue.dead_letter_routing_key
        if target == "" and key in queues:
            edges.append(_Edge(queues[queue.name], queues[key], "dead letters", True))
        elif target is not None:
            label = "dead letters" if key is None else f"dead letters: {key}"
            end = exchange_node(target, bool(queue.dead_letter_exists))
            edges.append(_Edge(queues[queue.name], end, label, True))
    return _Graph(f"virtual host {virtual_host.name}", nodes, edges)


def _printable(text: str) -> str:
    """The text in one line, without characters that UTF-8 cannot encode."""
    encodable = text.encode("utf-8", "backslashreplace").decode()
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in encodable
    )


def _entities(text: str) -> str:
    """A label in Mermaid, with special characters as numeric entities."""
    return re.sub(r"[^\w .:/=-]", lambda found: f"#{ord(found[0])};", _printable(text))


def _escaped(text: str) -> str:
    """A label in the DOT language."""
    return _printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
