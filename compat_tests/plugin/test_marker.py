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


def test_closest_marker_has_precedence_and_outer_markers_fill_in(run_tests: RunTests) -> None:
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


def test_unknown_marker_argument_is_an_error_that_lists_the_arguments(run_tests: RunTests) -> None:
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


def test_marker_is_registered_for_strict_markers(run_tests: RunTests) -> None:
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


WRONG = {
    "personality=[]": "names none",
    "personality=()": "names none",
    "personality=5": "no personality 5",
    "personality=['spec', 5]": "no personality 5",
    "memory_limit='x'": "memory_limit must be",
    "timeout='1'": "no argument 'timeout'",
    "seeds=5": "add simulated=True",
    "kinds=['task']": "add simulated=True",
    "checks=[]": "give True, or the names",
    "checks=5": "give True, or the names",
    "checks=['lots']": "there is no check 'lots'; did you mean 'lost'?",
    "checks=True, allow=5": "allow=5: give the names",
    "checks=True, allow=['x']": "no rule or reason 'x'",
    "checks=True, trace=0": "trace=0 switches it off",
    "allow='rejected'": "add checks=True",
    "env=[]": "give the names",
    "env=['A', 'A={host}']": "'A' is there twice",
    "reset=0": "give True or False",
    "reset=False": "add scope='session'",
    "scope=None": "there is no scope None",
    "scope='session', port=1": "add scope='function'",
    "runtime='asyncio'": "write `async def`",
    "simulated=1": "give True or False",
    "simulated=True, seeds=[True]": "give the number of schedules",
    "simulated=True, kinds='task'": "give a list of kinds",
    "simulated=True, kinds=5": "give a list of kinds",
    "simulated=True, kinds=[]": "give a list of kinds",
    "simulated=True, kinds=['tusk']": "there is no kind 'tusk'; did you mean 'task'?",
    "simulated=True, time_limit='1'": "limit must be a number of seconds",
    "simulated=True, patch_time=1": "patch_time must be True or False",
    "simulated=True, now='noon'": "now must be a datetime",
}


def test_each_wrong_argument_of_a_marker_fails_its_test_and_says_where_it_stands(run_tests: RunTests) -> None:
    lines = ["import pytest"]
    for number, arguments in enumerate(WRONG):
        kind = "async def" if "simulated=True" in arguments else "def"
        lines += [f"@pytest.mark.amqp({arguments})", f"{kind} test_{number:02}(amqp_broker): pass"]
    result = run_tests("\n".join(lines), "-rN")
    result.assert_outcomes(errors=len(WRONG), passed=1)  # That of ["spec", 5] with "spec".
    for number, (arguments, said) in enumerate(WRONG.items()):
        place = f"test_inner.py:{2 * number + 2})"
        [at] = [at for at, line in enumerate(result.outlines) if place in line]
        assert said in result.outlines[at - 1], arguments


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


def test_an_error_of_a_marker_says_where_the_marker_stands(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import unittest
        import pytest

        pytestmark = pytest.mark.amqp(trace=-1)

        @pytest.mark.amqp(trace=5, personality="rabbitmq-4.33")
        def test_of_its_own(): pass

        @pytest.mark.amqp(trace=5)
        class TestOrders:
            @pytest.mark.amqp(clock="virtual")
            def test_fine(self): pass

            @pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.amqp("spec"))])
            def test_parameters(self, n): pass

        @pytest.mark.amqp(seeds=7)
        class Base:
            pass

        @pytest.mark.amqp(trace=5)
        class TestDerived(Base):
            def test_of_the_base(self): pass

        class TestOther(unittest.TestCase):
            pytestmark = [pytest.mark.amqp(trace=5, clok="wall")]

            def test_of_unittest(self): pass

        def test_of_the_module(): pass
        """
    )
    result.assert_outcomes(passed=2, errors=5)
    result.stdout.fnmatch_lines(
        [
            "*no personality 'rabbitmq-4.33'*",
            "(the marker stands at the test test_of_its_own, test_inner.py:6)",
            "*takes named arguments only*",
            "(the marker stands at the test test_parameters[[]2], test_inner.py:14)",
            "*seeds=7 is about simulations*",
            "(the marker stands at the class Base, test_inner.py:17)",
            "*no argument 'clok'; did you mean 'clock'?*",
            "(the marker stands at the class TestOther, test_inner.py:25)",
            "*trace must be a number of entries to keep*",
            "(the marker stands at the module test_inner.py, as its pytestmark)",
        ]
    )


def test_an_argument_that_contradicts_the_options_names_both(run_tests: RunTests) -> None:
    source = """
        import pytest

        @pytest.mark.amqp(runtime="asyncio")
        def test_it(): pass
        """
    result = run_tests(source, "-oamqp_broker_arguments=management=true")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "*the HTTP API uses a thread of its own*, together with management=True of the options*",
            "(the marker stands at the test test_it, test_inner.py:3)",
        ]
    )


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--amqp-personality=rabbitmq-4", "--amqp-personality: no personality 'rabbitmq-4'; *"),
        ("-oamqp_personality=rabitmq-4.3", "the ini option amqp_personality: *did you mean 'rabbitmq-4.3'?*"),
        ("--amqp-scope=sesion", "--amqp-scope: there is no scope 'sesion'; did you mean 'session'?"),
        ("--amqp-runtime=thraed", "--amqp-runtime: there is no runtime 'thraed'; did you mean 'thread'?"),
        ("--amqp-real-url=amqp://host:99999/", "--amqp-real-url: 'amqp://host:99999/' is not of the form *"),
        ("-oamqp_spark_fast=perhaps", "the ini option amqp_spark_fast: *perhaps*"),
        ("--amqp-trace=test_inner.py", "--amqp-trace: *test_inner.py is not a folder"),
        (
            "--amqp-trace=test_inner.py/a/b",
            "--amqp-trace: *test_inner.py is not a folder, so that *b cannot be made",
        ),
        ("--amqp-real-url=", "--amqp-real-url: the value is empty"),
        ("--amqp-compare=", "--amqp-compare: the value is empty"),
        (
            "--amqp-trace-formats=htlm",
            "--amqp-trace-formats: there is no format 'htlm'; did you mean 'html'?",
        ),
        ("-oamqp_timeline_lines=all", "amqp_timeline_lines: 'all' is not a number of lines"),
        ("-oamqp_broker_arguments=clock=vitual", "amqp_broker_arguments: *vitual*"),
        ("-oamqp_broker_arguments=port=1\nport=2", "amqp_broker_arguments: 'port' is there twice"),
        ('-oamqp_broker_arguments=users=["bob"]', "amqp_broker_arguments: *'bob' has no password*"),
        ("-oamqp_env=A\nA={host}", "amqp_env: 'A' is there twice"),
        ("--amqp-seed=x", "*--amqp-seed: invalid int value: 'x'"),
        ("--amqp-schedules=0", "--amqp-schedules: 0 is not a number of schedules"),
        ("--amqp-seed=1 --amqp-schedules=9", "--amqp-seed is one schedule and --amqp-schedules several*"),
    ],
)
@pytest.mark.parametrize("workers", ["0", "2"])
def test_invalid_option_gives_a_single_usage_error_before_the_run(
    run_tests: RunTests, option: str, said: str, workers: str
) -> None:
    result = run_tests(
        """
        import pytest

        @pytest.mark.parametrize("n", range(3))
        def test_it(amqp_broker, n):
            pass
        """,
        *(option.split() if option.startswith("--") else [option]),
        f"-n{workers}",
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}" if not said.startswith("*") else said])
    assert result.stderr.str().count(said.strip("*").split("*")[0]) == 1
    result.stdout.no_fnmatch_line("*test session starts*")
