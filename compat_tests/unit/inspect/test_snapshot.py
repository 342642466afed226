"""The topology as text and as pictures: the same for the same, whatever the names and the order."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.inspect import NoSuchVirtualHost
from fakeamqp.inspect.snapshot import topology
from fakeamqp.model.operations import carry_out
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

NASTY = 'a"b\\c<d>#e;`f`|\n&amp;}]) end'


def text(server: Server, **options: Any) -> str:
    return str(topology(server.state, **options))


def shop(
    server: Server, order: Callable[[list[Callable[[], object]]], object] = lambda steps: None
) -> Client:
    """A topology with a bit of everything, declared in whatever order."""
    client = server.client()
    host = server.vhost
    things = [
        lambda: host.exchanges.declare(
            "events", "topic", durable=True, arguments={"alternate-exchange": "lost"}
        ),
        lambda: host.exchanges.declare("lost", "fanout", auto_delete=True),
        lambda: host.exchanges.declare("inner", "headers", internal=True),
        lambda: client.declare(
            "orders", durable=True, arguments={"x-message-ttl": 60_000, "x-queue-type": "quorum"}
        ),
        lambda: client.declare("audit", auto_delete=True, arguments={"x-dead-letter-exchange": "nowhere"}),
        lambda: client.declare("", exclusive=True, arguments={"x-max-length": 1}),
        lambda: client.declare("", exclusive=True, arguments={"x-max-length": 2}),
        lambda: carry_out(
            host.policies.setting(
                "ttl",
                {
                    "pattern": "^aud",
                    "definition": {"expires": 9, "max-length": 5},
                    "apply-to": "all",
                    "priority": 0,
                },
            )
        ),
        lambda: carry_out(
            host.policies.setting(
                "cap",
                {"pattern": "^", "definition": {"max-length": 9}, "apply-to": "queues", "priority": 1},
                operator=True,
            )
        ),
    ]
    order(things)
    for each in things:
        each()
    small = next(name for name, queue in host.queues.items() if queue.options.max_length == 1)
    bindings = [
        ("events", "orders", "order.*", {}),
        ("events", "audit", "#", {}),
        ("events", small, "made.up", {}),
        ("inner", "audit", "", {"x-match": "any", "shop": ["north", 1, True, None]}),
        ("amq.direct", "orders", "k", {}),
    ]
    order(bindings)
    for source, destination, key, arguments in bindings:
        host.bindings.bind(source, host.queues[destination], key, arguments)
    host.bindings.bind("events", host.exchanges["inner"], "in.#")
    return client


EXPECTED = """\
virtual host "/"
  exchange "amq.direct" direct durable
    "k" -> queue "orders"
  exchange "events" topic durable
    alternate-exchange = "lost"
    otherwise -> exchange "lost"
    "#" -> queue "audit"
    "in.#" -> exchange "inner"
    "made.up" -> queue "amq.gen-1"
    "order.*" -> queue "orders"
  exchange "inner" headers internal
    "" -> queue "audit" {shop: ["north", 1, true, null], x-match: "any"}
  exchange "lost" fanout auto-delete
  queue "audit" classic auto-delete
    x-dead-letter-exchange = "nowhere"
    policy "ttl"
    operator policy "cap"
    dead letters -> exchange "nowhere", which does not exist
  queue "orders" quorum durable
    x-message-ttl = 60000
    operator policy "cap"
  queue "amq.gen-1" classic exclusive
    x-max-length = 1
    operator policy "cap"
  queue "amq.gen-2" classic exclusive
    x-max-length = 2
    operator policy "cap"
  operator policy "cap" "^" -> {max-length: 9} for queues priority 1
  policy "ttl" "^aud" -> {expires: 9, max-length: 5}"""


def test_topology_text_lists_each_entity_once_in_order(server: Server):
    shop(server)
    assert text(server) == EXPECTED


@given(st.integers())
def test_topology_does_not_depend_on_the_order_of_declarations(seed: int):
    server = Server()
    shop(server, Random(seed).shuffle)
    assert text(server) == EXPECTED
    straight = Server()
    shop(straight)
    assert topology(server.state) == topology(straight.state)
    assert topology(server.state).mermaid() == topology(straight.state).mermaid()
    assert topology(server.state).graphviz() == topology(straight.state).graphviz()


def test_topology_with_another_queue_is_not_equal(server: Server):
    shop(server)
    before = topology(server.state)
    server.vhost.queues.declare("one more")
    assert topology(server.state) != before
    assert str(topology(server.state)) == EXPECTED.replace(
        '  queue "orders"', '  queue "one more" classic\n    operator policy "cap"\n  queue "orders"'
    )


def test_topology_text_shows_counts_and_consumers_only_on_request(server: Server):
    client = server.client()
    client.declare("q")
    client.qos(1)
    client.consume("q", "amq.ctag-abc")
    client.consume("q", "ctag1." + "0a" * 16)
    client.consume("q", "mine", arguments={"x-priority": 5})
    client.fill("q", b"1", b"2", b"3", b"4")
    assert text(server) == 'virtual host "/"\n  queue "q" classic'
    assert text(server, counts=True).endswith("\n    1 ready, 3 unacked")
    assert text(server, consumers=True).splitlines()[2:] == [
        '    consumer "mine" prefetch 1 {x-priority: 5}',
        "    consumer prefetch 1",
        "    consumer prefetch 1",
    ]


def test_topology_text_covers_all_virtual_hosts_or_a_given_virtual_host(server: Server):
    server.state.add_virtual_host("b").queues.declare("q")
    assert text(server) == 'virtual host "/"\nvirtual host "b"\n  queue "q" classic'
    assert text(server, virtual_host="b") == 'virtual host "b"\n  queue "q" classic'
    assert text(server, virtual_host="/", predeclared=True).count("exchange") == 8
    with pytest.raises(NoSuchVirtualHost, match="did you mean"):
        text(server, virtual_host="bb")


def test_dead_letter_key_of_a_generated_queue_name_is_shown_as_that_queue(server: Server):
    client = server.client()
    name = client.declare_ok("", exclusive=True).queue
    client.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name})
    assert 'dead letters -> exchange "" by "amq.gen-1"' in text(server)
    assert 'q0 -.->|"dead letters"| q1' in topology(server.state).mermaid()


# --- pictures -----------------------------------------------------------------------------------------------


def test_mermaid_picture_has_nodes_and_edges_of_the_topology(server: Server):
    shop(server)
    lines = topology(server.state).mermaid().splitlines()
    assert lines[:2] == ["flowchart LR", '  subgraph h0["virtual host /"]']
    assert '    e1{{"events<br/>topic"}}' in lines
    assert '    q1[("orders<br/>quorum")]' in lines
    assert '    e1 -->|"order.#42;"| q1' in lines
    assert '    e1 -->|"in.#35;"| e2' in lines
    assert '    e1 -.->|"otherwise"| e3' in lines
    assert '    x8("nowhere<br/>does not exist")' in lines
    assert '    q0 -.->|"dead letters"| x8' in lines
    assert lines[-1] == "  end"


def nasty(server: Server) -> None:
    server.vhost.exchanges.declare(NASTY, "topic")
    server.vhost.queues.declare(NASTY, QueueDeclaration(arguments={"x-dead-letter-exchange": "\udc80\0é"}))
    server.vhost.bindings.bind(NASTY, server.vhost.queues[NASTY], NASTY, {NASTY: NASTY})


def test_special_characters_in_names_are_escaped_in_mermaid(server: Server):
    nasty(server)
    node = re.compile(r'    [eqx]\d+(\{\{"[^"]*"\}\}|\[\("[^"]*"\)\]|\("[^"]*"\))')
    edge = re.compile(r'    [eqx]\d+ -\.?->(\|"[^"]*"\|)? [eqx]\d+')
    text = re.compile(r"([\w .:/=-]|#\d+;|<br/>)*")
    inner = topology(server.state).mermaid().splitlines()[2:-1]
    assert len(inner) == 5
    for line in inner:
        assert node.fullmatch(line) or edge.fullmatch(line), line
        for label in re.findall('"([^"]*)"', line):
            assert text.fullmatch(label), label


def test_graphviz_picture_has_nodes_and_edges_of_the_topology(server: Server):
    shop(server)
    lines = topology(server.state).graphviz().splitlines()
    assert lines[0] == "digraph topology {"
    assert '    e1 [label="events\\ntopic", shape=hexagon];' in lines
    assert '    q1 [label="orders\\nquorum", shape=cylinder];' in lines
    assert '    e1 -> q1 [label="order.*"];' in lines
    assert '    q0 -> x8 [label="dead letters", style=dashed];' in lines
    assert lines[-1] == "}"


def test_special_characters_in_names_are_escaped_in_graphviz(server: Server):
    nasty(server)
    picture = topology(server.state).graphviz()
    text = r'"(\\.|[^"\\])*"'
    node = rf"[eqx]\d+ \[label={text}, shape=\w+\]"
    edge = rf"[eqx]\d+ -> [eqx]\d+ \[label={text}(, style=dashed)?\]"
    statement = re.compile(rf"    (label={text}|{node}|{edge});")
    inner = picture.splitlines()[4:-2]
    assert len(inner) == 6
    for line in inner:
        assert statement.fullmatch(line), line
    assert "&amp;amp;" in picture


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_accepts_the_picture_without_errors(server: Server):
    shop(server)
    nasty(server)
    server.state.add_virtual_host(NASTY).queues.declare("q")
    picture = topology(server.state).graphviz()
    done = subprocess.run(["dot", "-Tplain"], input=picture, capture_output=True, text=True, encoding="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\nedge ") == picture.count(" -> ")


def test_virtual_hosts_in_the_same_picture_have_separate_nodes(server: Server):
    for name in ("/", "b"):
        server.state.add_virtual_host(name).queues.declare("q")
    picture = topology(server.state).mermaid()
    assert 'q0_0[("q")]' in picture
    assert 'q1_0[("q")]' in picture


def test_messages_and_consumers_do_not_change_the_topology_text(server: Server):
    client = shop(server)
    client.publish(b"1", exchange="events", routing_key="order.placed")
    client.call(m.BasicConsume(queue="orders"), m.BasicConsumeOk)
    assert text(server) == EXPECTED
