"""Diagrams of a topology, for Mermaid and Graphviz."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fakeamqp.inspect.snapshot import Topology, VirtualHostEntry

__all__ = ["graphviz", "mermaid"]


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


def mermaid(topology: Topology) -> str:
    """A flowchart."""
    lines = ["flowchart LR"]
    shapes = {"exchange": '{{{{"{0}"}}}}', "queue": '[("{0}")]', "missing": '("{0}")'}
    for number, graph in enumerate(_graphs(topology)):
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


def graphviz(topology: Topology) -> str:
    """A directed graph."""
    lines = ["digraph topology {", "  rankdir=LR;", '  node [fontname="Helvetica"];']
    shapes = {"exchange": "hexagon", "queue": "cylinder", "missing": "plaintext"}
    for number, graph in enumerate(_graphs(topology)):
        lines += [f"  subgraph cluster_{number} {{", f'    label="{_escaped(graph.title)}";']
        for node in graph.nodes:
            label = "\\n".join(map(_escaped, node.lines))
            lines.append(f'    {node.id} [label="{label}", shape={shapes[node.kind]}];')
        for edge in graph.edges:
            style = ", style=dashed" if edge.dashed else ""
            lines.append(f'    {edge.start} -> {edge.end} [label="{_escaped(edge.label)}"{style}];')
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _graphs(topology: Topology) -> Iterator[_Graph]:
    for number, virtual_host in enumerate(topology.virtual_hosts):
        yield _graph(virtual_host, f"{number}_" if len(topology.virtual_hosts) > 1 else "")


def _graph(virtual_host: VirtualHostEntry, prefix: str) -> _Graph:
    exchanges = {each.name: f"e{prefix}{number}" for number, each in enumerate(virtual_host.exchanges)}
    queues = {each.name: f"q{prefix}{number}" for number, each in enumerate(virtual_host.queues)}
    nodes = [
        *(
            _Node(exchanges[each.name], "exchange", (each.name or "(default)", each.type))
            for each in virtual_host.exchanges
        ),
        *(_Node(queues[each.name], "queue", (each.name, *_kind(each.type))) for each in virtual_host.queues),
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


def _kind(type_name: str) -> tuple[str, ...]:
    return () if type_name == "classic" else (type_name,)


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
