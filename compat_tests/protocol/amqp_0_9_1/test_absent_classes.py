"""Brokers that are made without some classes and methods (`Personality.not_implemented`)."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

pytestmark = pytest.mark.needs("personality of choices")

rule = pytest.mark.rule


@rule("0-9-1/tx/optional-class")
def test_tx_select_on_a_broker_without_transactions_closes_the_connection_with_540(server: Server) -> None:
    close = server.varied(not_implemented=("tx",)).client().declare("q").ends(m.TxSelect(), 540)
    assert (close.class_id, close.method_id) == (90, 10)
    assert close.reply_text.endswith("this broker is made without tx.select")


def test_method_missing_from_the_broker_closes_the_connection_with_540(server: Server) -> None:
    client = server.varied(not_implemented=("tx.rollback",)).client().perform(m.TxSelect())
    client.perform(m.TxCommit()).ends(m.TxRollback(), 540)


def test_broker_without_basic_recover_still_implements_basic_recover_async(server: Server) -> None:
    client = server.varied(not_implemented=("basic.recover",)).client().declare("q")
    client.send(m.BasicRecoverAsync(requeue=True)).perform(m.QueuePurge(queue="q"))
    client.ends(m.BasicRecover(requeue=True), 540)


@rows(
    "absent, capability",
    ("confirm", "publisher_confirms"),
    ("confirm.select", "publisher_confirms"),
    ("exchange.bind", "exchange_exchange_bindings"),
    ("basic.nack", "basic.nack"),
)
def test_capabilities_of_absent_methods_are_hidden(server: Server, absent: str, capability: str) -> None:
    def announced(server: Server) -> set[str]:
        client = server.connect()
        start = client.send_bytes(client.protocol_header).expect(m.ConnectionStart, 0)
        return set(start.server_properties["capabilities"])

    assert announced(server) - announced(server.varied(not_implemented=(absent,))) == {capability}
