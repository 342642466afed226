"""Tests of users with clients of AMQP 1.0: the fixtures, the faults, the comparison, and the timeline."""

from __future__ import annotations

import pytest

from compat_tests.plugin.conftest import WriteTests

pytest.importorskip("proton")

HEAD = """
    import proton
    from proton.utils import BlockingConnection, SendException

    @pytest.fixture
    def link(amqp_broker):
        amqp_broker.load_definitions({"queues": [{"name": "orders", "vhost": "/", "durable": True}]})
        connection = BlockingConnection(f"amqp://guest:guest@127.0.0.1:{amqp_broker.port}", timeout=10)
        yield connection
        connection.close()
"""


def test_comparison_of_two_versions_shows_where_the_conversation_parts(write_tests: WriteTests) -> None:
    result = write_tests(
        HEAD
        + """
    def test_it(link, amqp_broker):
        link.create_sender("/queues/orders").send(proton.Message(body=b"x", id="5"))
        link.create_receiver("/queues/orders", credit=1).receive()

    def test_login_only(link):
        pass
    """
    ).run("--amqp-compare=rabbitmq-4.1,rabbitmq-4.2", passed=4)
    told = result.stdout.str()
    assert "2 tests ran on both, 1 with no difference" in told
    assert "next_incoming_id=4294967292" in told


def test_comparison_ignores_random_names_of_containers_and_links(write_tests: WriteTests) -> None:
    result = write_tests(
        HEAD
        + """
    def test_it(link):
        link.create_sender("/queues/orders").send(proton.Message(body=b"x"))
    """
    ).run("--amqp-compare=rabbitmq-4.2,rabbitmq-4.3", passed=2)
    assert "1 test ran on both, 1 with no difference" in result.stdout.str()


def test_fault_on_a_performative_and_the_timeline_of_a_failed_test(write_tests: WriteTests) -> None:
    result = write_tests(
        HEAD
        + """
    def test_it(link, amqp_faults):
        amqp_faults.on("transfer", queue="orders").nack().once()
        sender = link.create_sender("/queues/orders")
        with pytest.raises(SendException):
            sender.send(proton.Message(body=b"x"))
        raise AssertionError("to see the timeline")
    """
    ).run(failed=1)
    told = result.stdout.str()
    assert "fault: when a transfer with queue 'orders' comes: nack it" in told
    assert "state=rejected(error=" in told


def test_checks_of_the_marker_find_an_unsettled_message(write_tests: WriteTests) -> None:
    result = write_tests(
        HEAD
        + """
    @pytest.mark.amqp(checks=True)
    def test_it(amqp_broker, link):
        link.create_sender("/queues/orders").send(proton.Message(body=b"x", inferred=True))
        link.create_receiver("/queues/orders", credit=1).receive()
    """
    ).run(failed=1)
    assert "left-unacked" in result.stdout.str()
