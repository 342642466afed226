from __future__ import annotations

import inspect
import json

import pytest

from compat_tests.plugin.conftest import RunTests
from pytest_plugin import marker


def test_a_marker_configures_the_broker(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pika
        import pytest

        @pytest.mark.amqp(users={"alice": "secret"})
        def test_it(pika_connection, amqp_url):
            assert "alice:secret@" in amqp_url
            with pytest.raises(pika.exceptions.ProbableAuthenticationError):
                guest = pika.URLParameters(amqp_url)
                guest.credentials = pika.PlainCredentials("guest", "guest")
                pika.BlockingConnection(guest)
        """
    )
    result.assert_outcomes(passed=1)


def test_a_marker_loads_definitions(run_tests: RunTests, pytester: pytest.Pytester) -> None:
    definitions = {"queues": [{"name": "orders", "vhost": "/", "durable": True, "arguments": {}}]}
    path = pytester.path / "definitions.json"
    path.write_text(json.dumps(definitions))
    result = run_tests(
        f"""
        import pytest

        @pytest.mark.amqp(definitions={str(path)!r})
        def test_file(pika_channel):
            pika_channel.queue_declare("orders", passive=True)

        @pytest.mark.amqp(definitions={definitions!r})
        def test_dictionary(pika_channel):
            pika_channel.queue_declare("orders", passive=True)
        """
    )
    result.assert_outcomes(passed=2)


def test_the_closest_marker_wins_and_the_others_fill_in(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pika
        import pytest

        pytestmark = pytest.mark.amqp(users={"module": "m"}, virtual_hosts=["north"])

        @pytest.mark.amqp(users={"class": "c"})
        class TestOrders:
            @pytest.mark.amqp(users={"test": "t"})
            def test_closest(self, amqp_url):
                assert "test:t@" in amqp_url
                pika.BlockingConnection(pika.URLParameters(amqp_url.removesuffix("%2F") + "north")).close()

            def test_class(self, amqp_url):
                assert "class:c@" in amqp_url

        def test_module(amqp_url):
            assert "module:m@" in amqp_url
        """
    )
    result.assert_outcomes(passed=3)


def test_the_factory_takes_the_marker_as_its_base(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pytest

        @pytest.mark.amqp(users={"alice": "secret"})
        def test_it(make_amqp_broker):
            assert "alice:secret@" in make_amqp_broker().url
            assert "bob:secret@" in make_amqp_broker(users={"bob": "secret"}).url
        """
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("fixtures", ["amqp_broker", ""], ids=["with-fixture", "without-fixture"])
def test_a_misspelled_argument_names_the_near_match(run_tests: RunTests, fixtures: str) -> None:
    result = run_tests(
        f"""
        import pytest

        @pytest.mark.amqp(personalty="spec")
        def test_it({fixtures}):
            pass
        """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*'personalty'; did you mean 'personality'?*"])
    text = result.stdout.str()
    told, summary = text.split("short test summary info")  # The summary repeats the line, whole or cut off.
    assert told.count("did you mean") == 1, text
    assert summary.count("Broker has no argument") <= 1, text
    assert "During handling" not in text


def test_an_argument_like_no_other_gets_the_whole_list(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pytest

        @pytest.mark.amqp(zzz=1)
        def test_it():
            pass
        """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*'zzz'*(usual arguments are clock, definitions, deny, *, personality, *"])


def test_a_choice_of_the_personality_can_be_made_by_name(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pika
        import pytest

        @pytest.mark.amqp(heartbeat=17)
        def test_it(amqp_url):
            suggested = []

            def take(connection, seconds):
                suggested.append(seconds)
                return seconds

            parameters = pika.URLParameters(amqp_url)
            parameters.heartbeat = take
            pika.BlockingConnection(parameters).close()
            assert suggested == [17]
        """
    )
    result.assert_outcomes(passed=1)


def test_positional_arguments_are_refused(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pytest

        @pytest.mark.amqp("spec")
        def test_it():
            pass
        """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*takes named arguments only*"])


def test_deprecated_features_are_permitted_and_denied_by_name(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pika
        import pytest

        def declare(broker):
            with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
                connection.channel().queue_declare("q")

        @pytest.mark.amqp(personality="rabbitmq-4.3", permit=["transient_nonexcl_queues"])
        def test_permitted(amqp_broker):
            declare(amqp_broker)

        @pytest.mark.amqp(deny=["transient_nonexcl_queues"])
        def test_denied(amqp_broker):
            with pytest.raises(pika.exceptions.ConnectionClosedByBroker):
                declare(amqp_broker)

        @pytest.mark.amqp(permit=["gobal_qos"])
        def test_misspelled(amqp_broker):
            pass
        """
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*did you mean 'global_qos'*"])


def test_a_misspelled_personality_names_the_near_match(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pytest

        @pytest.mark.amqp(personality="rabbitmq-4.x2")
        def test_it(amqp_broker):
            pass
        """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*rabbitmq-4.2*"])


def test_the_marker_is_known_to_strict_runs(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pytest

        @pytest.mark.amqp(personality="spec")
        def test_it(amqp_broker):
            pass
        """,
        "--strict-markers",
    )
    result.assert_outcomes(passed=1)
    assert "@pytest.mark.amqp(personality=" in run_tests("", "--markers").stdout.str()


def test_the_broker_takes_the_usual_arguments_of_the_marker() -> None:
    from fakeamqp import Broker

    assert set(marker.OPTIONS) <= set(inspect.signature(Broker).parameters)


@pytest.mark.parametrize("option", ["--amqp-personality=spec", "-oamqp_personality=spec"])
def test_the_personality_of_all_tests_is_an_option(run_tests: RunTests, option: str) -> None:
    source = """
        import socket

        import pytest

        def is_rabbitmq(broker):
            with socket.create_connection((broker.host, broker.port)) as client:
                client.sendall(b"AMQP\\0\\0\\x09\\x01")
                return b"RabbitMQ" in client.recv(4096)

        def test_usual(amqp_broker):
            assert is_rabbitmq(amqp_broker) is {usual}

        @pytest.mark.amqp(personality="rabbitmq-4.2")
        def test_marked(amqp_broker):
            assert is_rabbitmq(amqp_broker)
        """
    run_tests(source.format(usual=True)).assert_outcomes(passed=2)
    run_tests(source.format(usual=False), option).assert_outcomes(passed=2)


def test_a_list_of_personalities_runs_the_test_once_for_each(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pytest

        @pytest.mark.amqp(personality=["rabbitmq-3.13", "spec"])
        @pytest.mark.parametrize("size", [1, 2])
        def test_it(amqp_broker, size, request):
            name = amqp_broker._state.personality.name
            assert name in request.node.name

        @pytest.mark.amqp(personality=("rabbitmq-3.13", "rabbitmq-4.3"))
        class TestClass:
            def test_all(self, pika_connection):
                pass

            @pytest.mark.amqp(personality="spec")
            def test_one(self, amqp_broker):
                assert amqp_broker._state.personality.name == "spec"
        """,
        "-v",
    )
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines(
        [
            "test_inner.py::test_it?rabbitmq-3.13-1? PASSED*",
            "test_inner.py::test_it?rabbitmq-3.13-2? PASSED*",
            "test_inner.py::test_it?spec-1? PASSED*",
            "test_inner.py::test_it?spec-2? PASSED*",
            "test_inner.py::TestClass::test_all?rabbitmq-3.13? PASSED*",
            "test_inner.py::TestClass::test_all?rabbitmq-4.3? PASSED*",
            "test_inner.py::TestClass::test_one PASSED*",
        ]
    )


def test_personalities_can_be_records(run_tests: RunTests) -> None:
    result = run_tests(
        """
        from dataclasses import replace
        import pytest
        from fakeamqp import PERSONALITIES

        OURS = replace(PERSONALITIES["rabbitmq-4.2"], name="ours", heartbeat=7)

        @pytest.mark.amqp(personality=[OURS, "spec"])
        def test_it(amqp_broker):
            pass
        """,
        "-v",
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["test_inner.py::test_it?ours? PASSED*", "test_inner.py::test_it?spec? PASSED*"]
    )


def test_a_misspelled_personality_in_a_list_fails_its_run_only(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pytest

        @pytest.mark.amqp(personality=["spec", "rabbitmq-4.9"])
        def test_it(amqp_broker):
            pass
        """
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*no personality 'rabbitmq-4.9'; nearest to RabbitMQ 4.9 is 'rabbitmq-4.3'*"]
    )


def test_a_list_without_personalities_is_an_error(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pytest

        @pytest.mark.amqp(personality=[])
        def test_it(amqp_broker):
            pass
        """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*personality=[[]]) names no personality*"])


def test_methods_of_unittest_take_one_personality(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import unittest
        import pytest

        class Orders(unittest.TestCase):
            @pytest.mark.amqp(personality=["spec", "rabbitmq-4.3"])
            def test_it(self):
                pass
        """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*does not parametrize methods of unittest.TestCase; name one personality*"])
