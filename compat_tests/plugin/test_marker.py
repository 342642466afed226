from __future__ import annotations

import inspect
import json

import pytest

from compat_tests.plugin.conftest import WriteTests
from pytest_plugin import marker


def test_a_marker_configures_the_broker(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.mark.amqp(users={"alice": "secret"})
        def test_it(pika_connection, amqp_url):
            assert "alice:secret@" in amqp_url
            with pytest.raises(pika.exceptions.ProbableAuthenticationError):
                guest = pika.URLParameters(amqp_url)
                guest.credentials = pika.PlainCredentials("guest", "guest")
                pika.BlockingConnection(guest)
    """).run(passed=1)


def test_a_marker_loads_definitions(write_tests: WriteTests, pytester: pytest.Pytester) -> None:
    definitions = {"queues": [{"name": "orders", "vhost": "/", "durable": True, "arguments": {}}]}
    path = pytester.path / "definitions.json"
    path.write_text(json.dumps(definitions))
    write_tests(f"""
        @pytest.mark.amqp(definitions={str(path)!r})
        def test_file(pika_channel):
            pika_channel.queue_declare("orders", passive=True)

        @pytest.mark.amqp(definitions={definitions!r})
        def test_dictionary(pika_channel):
            pika_channel.queue_declare("orders", passive=True)
    """).run(passed=2)


def test_closest_marker_has_precedence_and_outer_markers_fill_in(write_tests: WriteTests) -> None:
    write_tests("""
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
    """).run(passed=3)


def test_the_factory_takes_the_marker_as_its_base(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.mark.amqp(users={"alice": "secret"})
        def test_it(make_amqp_broker):
            assert "alice:secret@" in make_amqp_broker().url
            assert "bob:secret@" in make_amqp_broker(users={"bob": "secret"}).url
    """).run(passed=1)


@pytest.mark.parametrize("fixtures", ["amqp_broker", ""], ids=["with-fixture", "without-fixture"])
def test_a_misspelled_argument_names_the_near_match(write_tests: WriteTests, fixtures: str) -> None:
    result = write_tests(f"""
        @pytest.mark.amqp(personalty="spec")
        def test_it({fixtures}):
            pass
    """).run(errors=1, said=["*'personalty'; did you mean 'personality'?*"])
    text = result.stdout.str()
    told, summary = text.split("short test summary info")  # The summary repeats the line, whole or cut off.
    assert told.count("did you mean") == 1, text
    assert summary.count("Broker has no argument") <= 1, text
    assert "During handling" not in text


def test_a_choice_of_the_personality_can_be_made_by_name(write_tests: WriteTests) -> None:
    write_tests("""        from fakeamqp import Personality

        @pytest.mark.amqp(personality=Personality("rabbitmq-4.3").with_(heartbeat=17))
        def test_it(amqp_url):
            suggested = []

            def take(connection, seconds):
                suggested.append(seconds)
                return seconds

            parameters = pika.URLParameters(amqp_url)
            parameters.heartbeat = take
            pika.BlockingConnection(parameters).close()
            assert suggested == [17]
    """).run(passed=1)


def test_deprecated_features_are_permitted_and_denied_by_name(write_tests: WriteTests) -> None:
    write_tests("""
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
    """).run(passed=2, errors=1, said=["*did you mean 'global_qos'*"])


def test_marker_is_registered_for_strict_markers(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.mark.amqp(personality="spec")
        def test_it(amqp_broker):
            pass
    """).run("--strict-markers", passed=1)
    assert "@pytest.mark.amqp(personality=" in write_tests("").run("--markers").stdout.str()


def test_the_broker_takes_the_usual_arguments_of_the_marker() -> None:
    from fakeamqp import Broker

    assert set(marker.OPTIONS) <= set(inspect.signature(Broker).parameters)


@pytest.mark.parametrize("option", ["--amqp-personality=spec", "-oamqp_personality=spec"])
def test_the_personality_of_all_tests_is_an_option(write_tests: WriteTests, option: str) -> None:
    source = """
        import socket


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
    write_tests(source.format(usual=True)).run(passed=2)
    write_tests(source.format(usual=False)).run(option, passed=2)


def test_a_list_of_personalities_runs_the_test_once_for_each(write_tests: WriteTests) -> None:
    write_tests("""
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
    """).run(
        "-v",
        passed=7,
        said=[
            "test_inner.py::test_it?rabbitmq-3.13-1? PASSED*",
            "test_inner.py::test_it?rabbitmq-3.13-2? PASSED*",
            "test_inner.py::test_it?spec-1? PASSED*",
            "test_inner.py::test_it?spec-2? PASSED*",
            "test_inner.py::TestClass::test_all?rabbitmq-3.13? PASSED*",
            "test_inner.py::TestClass::test_all?rabbitmq-4.3? PASSED*",
            "test_inner.py::TestClass::test_one PASSED*",
        ],
    )


def test_personalities_can_be_records(write_tests: WriteTests) -> None:
    write_tests("""
        from dataclasses import replace
        from fakeamqp.settings import PERSONALITIES

        OURS = replace(PERSONALITIES["rabbitmq-4.2"], name="ours", heartbeat=7)

        @pytest.mark.amqp(personality=[OURS, "spec"])
        def test_it(amqp_broker):
            pass
    """).run(
        "-v", passed=2, said=["test_inner.py::test_it?ours? PASSED*", "test_inner.py::test_it?spec? PASSED*"]
    )


def test_a_misspelled_personality_in_a_list_fails_its_run_only(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.mark.amqp(personality=["spec", "rabbitmq-4.9"])
        def test_it(amqp_broker):
            pass
    """).run(
        passed=1,
        errors=1,
        said=["*no personality 'rabbitmq-4.9'; nearest to RabbitMQ 4.9 is 'rabbitmq-4.3'*"],
    )


WRONG = {
    "'spec'": "takes named arguments only",
    "zzz=1": "no argument 'zzz' (usual arguments are clock, definitions, deny, ",
    "check=True": "did you mean 'checks'?",
    "simulate=True": "did you mean 'simulated'?",
    "scop='session'": "has no argument 'scop'; did you mean 'scope'?",
    "personality=[]": "names none",
    "personality=()": "names none",
    "personality=5": "no personality 5",
    "personality=['spec', 5]": "no personality 5",
    "personality='rabbitmq-4.x2'": "rabbitmq-4.2",
    "clock='virtaul'": "unknown clock 'virtaul'; did you mean 'virtual'?",
    "races='often'": "races must be True, False or a seed",
    "memory_limit='x'": "memory_limit must be",
    "timeout='1'": "no argument 'timeout'",
    "seeds=5": "add simulated=True",
    "seeds=3, simulated=False": "and this test is not simulated: add simulated=True",
    "kinds=['task']": "kinds=['task'] is about simulations",
    "patch_time=True": "patch_time=True is about simulations",
    "time_limit=60": "time_limit=60 is about simulations",
    "checks=[]": "give True, or the names",
    "checks=5": "checks=5: give True, or the names of checks",
    "checks='lots'": "there is no check 'lots'; did you mean 'lost'?",
    "checks=['lots']": "there is no check 'lots'; did you mean 'lost'?",
    "checks=True, allow=5": "allow=5: give the names",
    "checks=True, allow=['x']": "no rule or reason 'x'",
    "checks=True, allow='unroutabel'": "there is no rule or reason 'unroutabel' to allow; did you mean",
    "checks=True, trace=0": "trace=0 switches it off",
    "allow='rejected'": "allow='rejected' is about checks; add checks=True",
    "env=[]": "give the names",
    "env=['A', 'A={host}']": "'A' is there twice",
    "env=['HOST={hots}']": "'HOST={hots}': there is no {hots}; did you mean {host}?",
    "env=['={host}']": "'={host}' is neither a name nor NAME=template",
    "env=['A={host']": "'A={host': ",
    "reset=0": "give True or False",
    "reset=1": "reset=1: give True or False",
    "reset=False": "amqp(reset=False) is about the broker of the session",
    "scope=None": "there is no scope None",
    "scope='sesion'": "there is no scope 'sesion'; did you mean 'session'?",
    "scope='module'": "the scope 'function' or 'session', not 'module'",
    "scope='session', port=1": "add scope='function'",
    "scope='session', tls=True": "amqp(tls=...) configures a broker of the test's own",
    "runtime='asyncio'": "the broker of a test that is not a coroutine cannot run in its event loop",
    "simulated=1": "simulated=1: give True or False",
    "simulated=True, seeds=0": "seeds=0: give the number",
    "simulated=True, seeds='all'": "seeds='all': give the num",
    "simulated=True, seeds=[True]": "give the number of schedules",
    "simulated=True, kinds='task'": "give a list of kinds",
    "simulated=True, kinds=5": "give a list of kinds",
    "simulated=True, kinds=[]": "give a list of kinds",
    "simulated=True, kinds=['tusk']": "there is no kind 'tusk'; did you mean 'task'?",
    "simulated=True, time_limit='1'": "limit must be a number of seconds",
    "simulated=True, patch_time=1": "patch_time must be True or False",
    "simulated=True, now='noon'": "now must be a datetime",
    "simulated=True, runtime='thread'": "leave out runtime=",
    # A plain function, or another fixture.
    "simulated=True #def test_plain(amqp_broker)": "a simulated test is a coroutine",
    "seeds=3 #async def test_without_a_broker()": "seeds=3 is about simulations",
    "seeds=3 #async def test_coroutine(amqp_broker)": "seeds=3 is about simulations",
    "simulated=True #async def test_blocking(pika_channel)": "the clients of pika_channel block",
    "simulated=True #async def test_session(amqp_broker_session)": "the broker of the session runs in a",
}


def test_each_wrong_argument_of_a_marker_fails_its_test_and_says_where_it_stands(
    write_tests: WriteTests,
) -> None:
    lines = []
    for number, wrong in enumerate(WRONG):
        arguments, _, head = wrong.partition(" #")
        kind = "async def" if "simulated=True" in arguments else "def"
        lines += [
            f"@pytest.mark.amqp({arguments})",
            f"{head or f'{kind} test_{number:02}(amqp_broker)'}: pass",
        ]
    result = write_tests("\n".join(lines)).run("-rN", errors=len(WRONG), passed=1)  # ["spec", 5] with "spec"
    wrongs = []
    for number, (wrong, said) in enumerate(WRONG.items()):
        place = f"test_inner.py:{2 * number + 2})"
        told = [result.outlines[at - 1] for at, line in enumerate(result.outlines) if place in line]
        if len(told) != 1 or said not in told[0]:
            wrongs.append((wrong, said, told))
    assert wrongs == []


def test_methods_of_unittest_take_one_personality(write_tests: WriteTests) -> None:
    write_tests("""
        class Orders(unittest.TestCase):
            @pytest.mark.amqp(personality=["spec", "rabbitmq-4.3"])
            def test_it(self):
                pass
    """).run(errors=1, said=["*does not parametrize methods of unittest.TestCase; name one personality*"])


def test_an_error_of_a_marker_says_where_the_marker_stands(write_tests: WriteTests) -> None:
    write_tests("""
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
    """).run(
        passed=2,
        errors=5,
        said=[
            "*no personality 'rabbitmq-4.33'*",
            "(the marker stands at the test test_of_its_own, test_inner.py:4)",
            "*takes named arguments only*",
            "(the marker stands at the test test_parameters[[]2], test_inner.py:12)",
            "*seeds=7 is about simulations*",
            "(the marker stands at the class Base, test_inner.py:15)",
            "*no argument 'clok'; did you mean 'clock'?*",
            "(the marker stands at the class TestOther, test_inner.py:23)",
            "*trace must be a number of entries to keep*",
            "(the marker stands at the module test_inner.py, as its pytestmark)",
        ],
    )


def test_an_argument_that_contradicts_the_options_names_both(write_tests: WriteTests) -> None:
    source = """
        @pytest.mark.amqp(runtime="asyncio")
        def test_it(): pass
        """
    write_tests(source).run(
        "-oamqp_broker_arguments=management=true",
        errors=1,
        said=[
            "*HTTP is served on a thread of its own*, together with management=True of the options*",
            "(the marker stands at the test test_it, test_inner.py:2)",
        ],
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
        (
            "--amqp-races=often",
            "*--amqp-races: 'often' is not true, false or a seed, which is a whole number",
        ),
        ("--amqp-trace-formats=html,pcap", "*there is no format 'pcap'; did you mean 'pcapng'?"),
        ("-oamqp_trace_formats=xyz", "*there is no format 'xyz'; the formats are jsonl, html, pcapng"),
        ("--amqp-real-url=localhost:5672", "*is not of the form amqp://*"),
        ("--amqp-real-url=http://localhost/", "*is not of the form amqp://*"),
        ("--amqp-real-url=amqp://", "*is not of the form amqp://*"),
        ("--amqp-compare=rabbitmq-4.3", "*'rabbitmq-4.3' is not of the form A,B*"),
        ("--amqp-compare=spec,spec", "*'spec,spec' is not of the form A,B*"),
        (
            "--amqp-compare=spec,rabbitmq-4.4",
            "*no personality 'rabbitmq-4.4'; nearest to RabbitMQ 4.4 is 'rabbitmq-4.3'*",
        ),
        ("--amqp-compare=spec,x", "*no personality 'x'. Known: rabbitmq-3.10, *"),
        ("--amqp-compare=spec,rabbitmq-4.3 --amqp-real-url=amqp://localhost/", "*leave out --amqp-real-url"),
        ("--amqp-compare=spec,rabbitmq-4.3 --amqp-personality=spec", "*leave out --amqp-personality"),
        ("--amqp-compare=spec,rabbitmq-4.3 -oamqp_env=A", "*leave out the ini option amqp_env*"),
        ("-oamqp_env=HOST={hots}", "*'HOST={hots}': there is no {hots}; did you mean {host}?*"),
        ("-oamqp_env=={host}", "*'={host}' is neither a name nor NAME=template*"),
        ("-oamqp_env=A={host", "*'A={host': *"),
        ("-oamqp_broker_arguments=clok=virtual", "*Broker has no argument 'clok'; did you mean 'clock'?*"),
        (
            "-oamqp_broker_arguments=clock",
            "*'clock' is not of the form name=value, such as clock=virtual*",
        ),
        (
            "-oamqp_broker_arguments=virtual_hosts=shop",
            "*virtual_hosts must be a list of names, such as *, not 'shop'*",
        ),
        ("-oamqp_broker_arguments=definitions=nowhere.json", "*cannot read*nowhere.json*"),
        ("--amqp-seed=1 --amqp-schedules=9", "--amqp-seed is one schedule and --amqp-schedules several*"),
    ],
)
@pytest.mark.parametrize("workers", ["0", "2"])
def test_invalid_option_gives_a_single_usage_error_before_the_run(
    write_tests: WriteTests, option: str, said: str, workers: str
) -> None:
    result = write_tests("""
        @pytest.mark.parametrize("n", range(3))
        def test_it(amqp_broker, n):
            pass
    """).run(
        *(option.split() if option.startswith("--") else [option]),
        f"-n{workers}",
        usage_error=[f"ERROR: {said}" if not said.startswith("*") else said],
    )
    assert result.stderr.str().count(said.strip("*").split("*")[0]) == 1
    result.stdout.no_fnmatch_line("*test session starts*")
