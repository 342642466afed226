"""`--amqp-compare`: every test that takes a broker runs on two personalities.

The tests make two personalities of their own, "old" and "new", so that each difference is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.plugin.conftest import WriteTests
from compat_tests.tools.matrix import cases
from fakeamqp.settings import PERSONALITIES
from pytest_plugin.comparison.conversation import Conversation, _line, _random_words, parting

COMPARE = "--amqp-compare=old,new"
# Differences that the tests below do not notice, among which the cause has to be found.
UNNOTICED = {
    "checks_user_id": False,
    "largest_message": 5_000_000,
    "longest_pattern": 7,
    "negative_delivery_limit": False,
    "most_topic_wildcards": 1,
    "validates_consumer_timeout": True,
}

DELETES_A_MISSING_QUEUE = """
    def test_it(pika_channel):
        pika_channel.queue_delete("missing")
"""

Differ = Callable[..., None]


@pytest.fixture
def differ(monkeypatch: pytest.MonkeyPatch) -> Differ:
    """Make the personalities "old" and "new", which differ in these choices of "new"."""

    def make(**choices: Any) -> None:
        usual = PERSONALITIES["rabbitmq-4.2"]
        monkeypatch.setitem(PERSONALITIES, "old", replace(usual, name="old"))
        monkeypatch.setitem(PERSONALITIES, "new", replace(usual, name="new", **choices))

    return make


def section(result: pytest.RunResult) -> list[str]:
    """The lines of the section about compared tests."""
    lines = result.outlines
    start = next(number for number, line in enumerate(lines) if "AMQP comparison: old and new" in line)
    end = next(
        number
        for number, line in enumerate(lines)
        if number > start and line.startswith("=") and line.endswith("=")
    )
    return lines[start + 1 : end]


def test_failure_only_on_second_personality_fails_the_run_and_names_its_cause(
    write_tests: WriteTests, differ: Differ
) -> None:
    differ(deleting_missing_is_an_error=True, **UNNOTICED)
    result = write_tests(DELETES_A_MISSING_QUEUE).run(COMPARE, passed=1, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "_ test_it on new _" in result.stdout.str()
    lines = section(result)
    assert lines[:3] == [
        "1 test ran on both, 0 with no difference",
        "1 test passed on old and failed on new",
        "",
    ]
    told = "\n".join(lines[3:])
    for expected in (
        "test_inner.py::test_it: passed on old, failed on new\n",
        "  pika.exceptions.ChannelClosedByBroker: (404, ",
        "    on old:\n      c1 <- 1 queue.delete-ok message_count=0\n",
        "    on new:\n      c1 <- 1 channel.close reply_code=404 ",
        "  Choice deleting_missing_is_an_error: False in old, True in new\n",
        "    Source: rule exchange.delete/exchange-exists, queue.delete/queue-must-exist.\n",
        "  Proved: the test does the same on old with deleting_missing_is_an_error of new (",
    ):
        assert expected in told, expected
    assert "largest_message" not in told


def test_compare_reports_differences_with_xdist(write_tests: WriteTests, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        from dataclasses import replace
        from fakeamqp.settings import PERSONALITIES

        usual = PERSONALITIES["rabbitmq-4.2"]
        PERSONALITIES["old"] = replace(usual, name="old")
        PERSONALITIES["new"] = replace(usual, name="new", deleting_missing_is_an_error=True)
        """
    )
    result = write_tests(
        DELETES_A_MISSING_QUEUE
        + """
    def test_other(pika_channel):
        pika_channel.queue_declare("q")
        """
    ).run_apart(COMPARE, "-n", "2", passed=3, failed=1)
    lines = section(result)
    assert lines[0] == "2 tests ran on both, 1 with no difference"
    assert "  Choice deleting_missing_is_an_error: False in old, True in new" in lines


def test_compare_runs_tests_with_a_broker_twice_and_counts_those_without_difference(
    write_tests: WriteTests, differ: Differ
) -> None:
    differ(**UNNOTICED)
    result = write_tests("""
        RUNS = []

        def test_with_a_broker(pika_channel, amqp_broker):
            RUNS.append("with")
            pika_channel.queue_declare("q")
            pika_channel.basic_publish("", "q", b"x")
            amqp_broker.queue("q").wait_for(ready=1)

        def test_through_a_fixture(own):
            RUNS.append("through")

        @pytest.fixture
        def own(amqp_url):
            return amqp_url

        def test_without_a_broker():
            RUNS.append("without")

        @pytest.mark.amqp(personality="spec")
        def test_with_its_own_personality(amqp_broker):
            RUNS.append("own")

        def test_runs():
            assert RUNS == ["with", "with", "through", "through", "without", "own"]
    """).run(COMPARE, passed=7)
    assert result.ret == pytest.ExitCode.OK
    assert section(result) == ["2 tests ran on both, 2 with no difference"]


def test_verbose_output_names_the_personality_of_each_run(write_tests: WriteTests, differ: Differ) -> None:
    differ()
    write_tests(DELETES_A_MISSING_QUEUE).run(
        COMPARE,
        "-v",
        said=["test_inner.py::test_it PASSED on old *100%*", "test_inner.py::test_it PASSED on new *100%*"],
    )


def test_a_difference_that_the_test_does_not_mind(write_tests: WriteTests, differ: Differ) -> None:
    differ(heartbeat=30, **UNNOTICED)
    result = write_tests(DELETES_A_MISSING_QUEUE).run(COMPARE, passed=2)
    assert result.ret == pytest.ExitCode.OK
    lines = section(result)
    assert lines[1] == "1 test passed on both, with a difference"
    assert "      c1 <- 0 connection.tune channel_max=2047 frame_max=131072 heartbeat=60" in lines
    assert "      c1 <- 0 connection.tune channel_max=2047 frame_max=131072 heartbeat=30" in lines
    assert "  Choice heartbeat: 60 in old, 30 in new" in lines


def test_the_first_difference_is_that_of_the_choice_which_breaks_the_test(
    write_tests: WriteTests, differ: Differ
) -> None:
    differ(heartbeat=30, deleting_missing_is_an_error=True)
    lines = section(write_tests(DELETES_A_MISSING_QUEUE).run(COMPARE))
    assert "  Choice deleting_missing_is_an_error: False in old, True in new" in lines
    assert "    on old with deleting_missing_is_an_error of new:" in lines
    assert not any("heartbeat" in line for line in lines)


def test_the_lines_can_be_of_different_channels(write_tests: WriteTests, differ: Differ) -> None:
    differ(deprecated_features={"transient_nonexcl_queues": "denied"})
    lines = section(write_tests("def test_it(pika_channel): pika_channel.queue_declare('q')").run(COMPARE))
    start = lines.index("    on old:")
    assert lines[start + 1] == "      c1 <- 1 queue.declare-ok queue='q' message_count=0 consumer_count=0"
    assert lines[start + 2] == "    on new:"
    assert lines[start + 3].startswith("      c1 <- 0 connection.close reply_code=541")
    assert (
        "  Choice deprecated_features.transient_nonexcl_queues: 'permitted' in old, 'denied' in new" in lines
    )


def test_a_difference_that_only_the_broker_shows(write_tests: WriteTests, differ: Differ) -> None:
    differ(routes_by_cc_headers=False, **UNNOTICED)
    result = write_tests("""
        def test_it(pika_channel, amqp_broker):
            pika_channel.queue_declare("a")
            pika_channel.queue_declare("b")
            pika_channel.basic_publish("", "a", b"x", pika.BasicProperties(headers={"CC": ["b"]}))
            amqp_broker.queue("a").wait_for(ready=1)
            assert amqp_broker.queue("b").ready == 1
    """).run(COMPARE, passed=1, failed=1)
    lines = section(result)
    assert "      c1 == message with exchange='' routing_key='a': routed to a, b" in lines
    assert "      c1 == message with exchange='' routing_key='a': routed to a" in lines
    assert "  Choice routes_by_cc_headers: True in old, False in new" in lines


BOTH = """
    def refused(connection, call, *arguments):
        channel = connection.channel()
        try:
            getattr(channel, call)(*arguments)
        except pika.exceptions.ChannelClosedByBroker:
            return True
        return False

    def test_it(pika_connection):
        deleting = refused(pika_connection, "queue_delete", "missing")
        declaring = refused(pika_connection, "queue_declare", "x" * 200)
        assert not (deleting {} declaring)
"""


def test_comparison_names_each_choice_sufficient_to_cause_the_failure(
    write_tests: WriteTests, differ: Differ
) -> None:
    differ(deleting_missing_is_an_error=True, longest_name=100, **UNNOTICED)
    lines = section(write_tests(BOTH.format("or")).run(COMPARE))
    assert "  Choice deleting_missing_is_an_error: False in old, True in new" in lines
    assert "  Choice longest_name: 255 in old, 100 in new" in lines
    assert lines.count("  And by itself:") == 1


def test_choices_that_only_together_make_the_difference_are_named_together(
    write_tests: WriteTests, differ: Differ
) -> None:
    differ(deleting_missing_is_an_error=True, longest_name=100, **UNNOTICED)
    lines = section(write_tests(BOTH.format("and")).run(COMPARE))
    (proved,) = [line for line in lines if line.startswith("  Proved")]
    assert "longest_name and deleting_missing_is_an_error of new" in proved


def test_failure_only_on_first_personality_fails_the_run_and_names_its_cause(
    write_tests: WriteTests, differ: Differ
) -> None:
    differ(deleting_missing_is_an_error=True)
    result = write_tests("""
        def test_it(pika_channel):
            with pytest.raises(pika.exceptions.ChannelClosedByBroker):
                pika_channel.queue_delete("missing")
    """).run(COMPARE, passed=1, failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    lines = section(result)
    assert "test_inner.py::test_it: failed on old, passed on new" in lines
    assert "  Choice deleting_missing_is_an_error: False in old, True in new" in lines


def test_a_known_cause_is_tried_first(write_tests: WriteTests, differ: Differ) -> None:
    differ(deleting_missing_is_an_error=True, **UNNOTICED)
    source = DELETES_A_MISSING_QUEUE + DELETES_A_MISSING_QUEUE.replace("test_it", "test_other")
    proved = [line for line in section(write_tests(source).run(COMPARE)) if line.startswith("  Proved")]
    assert proved[1].endswith("(6 more runs).")
    assert proved[0] != proved[1]


def test_a_test_without_a_steady_outcome_gets_no_cause(write_tests: WriteTests, differ: Differ) -> None:
    differ(**UNNOTICED)
    result = write_tests("""
        RUNS = []

        def test_it(pika_channel):
            RUNS.append(1)
            assert len(RUNS) == 1
    """).run(COMPARE, passed=1, failed=1)
    assert "  No cause: the test has no steady outcome on old: passed, then failed." in section(result)


def test_a_failure_that_does_not_come_back_gets_no_cause(write_tests: WriteTests, differ: Differ) -> None:
    differ(**UNNOTICED)
    result = write_tests("""
        RUNS = []

        def test_it(pika_channel):
            RUNS.append(1)
            assert len(RUNS) != 2
    """).run(COMPARE)
    assert "  No cause: the test has no steady outcome on new: failed, then passed." in section(result)


def test_a_failure_by_chance_gets_no_cause(write_tests: WriteTests, differ: Differ) -> None:
    differ(**UNNOTICED)
    result = write_tests("""
        RUNS = []

        def test_it(pika_channel):
            RUNS.append(1)
            # Fails as if a choice had an effect, until the choice is looked at again.
            assert len(RUNS) in (1, 3, 5, 7, 9, 10, 11, 12)
    """).run(COMPARE, passed=1, failed=1)
    lines = section(result)
    assert "  No cause: no choices were found with which the difference shows in every run." in lines


@pytest.mark.parametrize("some_runs", ["(2,)", "(2, 4)"])
def test_behaviour_of_some_runs_only_is_not_reported_as_a_difference(
    write_tests: WriteTests, differ: Differ, some_runs: str
) -> None:
    differ(**UNNOTICED)
    result = write_tests(f"""
        RUNS = []

        def test_it(pika_channel):
            RUNS.append(1)
            if len(RUNS) in {some_runs}:
                pika_channel.queue_declare("sometimes", exclusive=True)
    """).run(COMPARE, passed=2)
    assert section(result) == ["1 test ran on both, 1 with no difference"]


def test_random_names_times_and_bytes_are_not_reported_as_differences(
    write_tests: WriteTests, differ: Differ
) -> None:
    differ(**UNNOTICED)
    result = write_tests("""
        import os, time, uuid

        def test_names_and_times(pika_channel):
            name = pika_channel.queue_declare("", exclusive=True).method.queue
            properties = pika.BasicProperties(
                reply_to=name, message_id=str(uuid.uuid4()), timestamp=int(time.time())
            )
            pika_channel.basic_publish("", name, b"x", properties)
            for _ in pika_channel.consume(name, auto_ack=True):
                break
            pika_channel.cancel()

        def test_random_bytes(pika_channel):
            pika_channel.queue_declare(f"q{os.urandom(3)}", exclusive=True)
    """).run(COMPARE, passed=4)
    assert section(result) == ["2 tests ran on both, 2 with no difference"]


def test_comparison_finds_a_difference_beside_random_queue_names(
    write_tests: WriteTests, differ: Differ
) -> None:
    differ(deleting_missing_is_an_error=True, **UNNOTICED)
    result = write_tests("""
        import os

        def test_it(amqp_url):
            with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
                connection.channel().queue_declare(f"q{os.urandom(3)}", exclusive=True)
            with pika.BlockingConnection(pika.URLParameters(amqp_url)) as connection:
                try:
                    connection.channel().queue_delete("missing")
                except pika.exceptions.ChannelClosedByBroker:
                    pass
    """).run(COMPARE)
    lines = section(result)
    assert "      c2 <- 1 queue.delete-ok message_count=0" in lines
    assert "  Choice deleting_missing_is_an_error: False in old, True in new" in lines


def test_every_run_gets_fixtures_instances_and_output_of_its_own(
    write_tests: WriteTests, differ: Differ
) -> None:
    differ(deleting_missing_is_an_error=True)
    result = write_tests("""
        MADE = []

        @pytest.fixture(scope="module")
        def shared():
            MADE.append("shared")
            yield
            MADE.append("torn down")

        @pytest.fixture
        def own(tmp_path):
            assert list(tmp_path.iterdir()) == []
            (tmp_path / "file").touch()

        class TestIt:
            count = 0

            def test_it(self, shared, own, pika_channel):
                print("printed")
                self.count += 1
                assert self.count == 1
                assert MADE == ["shared"]
                pika_channel.queue_delete("missing")

            def test_next(self, shared):
                assert MADE == ["shared"]
    """).run(COMPARE, passed=2, failed=1)
    assert result.outlines.count("printed") == 1
    assert "  Choice deleting_missing_is_an_error: False in old, True in new" in section(result)


def test_an_error_in_the_teardown_of_shared_fixtures_is_reported(
    write_tests: WriteTests, differ: Differ
) -> None:
    differ()
    write_tests("""
        @pytest.fixture(scope="module")
        def shared():
            yield
            raise ValueError("on purpose")

        def test_it(shared, amqp_broker):
            pass
    """).run(COMPARE, passed=2, errors=1, said=["E * ValueError: on purpose"])


def test_failures_outside_of_the_test_count_as_well(write_tests: WriteTests, differ: Differ) -> None:
    differ(deleting_missing_is_an_error=True)
    result = write_tests("""
        @pytest.fixture
        def clean(pika_channel):
            pika_channel.queue_delete("missing")

        def test_it(clean):
            pass
    """).run(COMPARE, passed=1, errors=1)
    assert "test_inner.py::test_it: passed on old, error on new" in section(result)


def test_skips_and_expected_failures_are_no_difference(write_tests: WriteTests, differ: Differ) -> None:
    differ(**UNNOTICED)
    result = write_tests("""
        @pytest.mark.skip
        def test_skipped(amqp_broker):
            pass

        @pytest.mark.xfail
        def test_xfailed(amqp_broker):
            assert False
    """).run(COMPARE, skipped=2, xfailed=2)
    assert section(result) == ["2 tests ran on both, 2 with no difference"]


def test_asynchronous_tests_and_unittest_classes(write_tests: WriteTests, differ: Differ) -> None:
    differ(deleting_missing_is_an_error=True)
    result = write_tests("""
        @pytest.mark.asyncio
        async def test_asynchronous(aio_pika_connection):
            channel = await aio_pika_connection.channel()
            await channel.queue_delete("missing")

        class Orders(unittest.TestCase):
            @pytest.fixture(autouse=True)
            def take(self, pika_channel):
                self.channel = pika_channel

            def test_unittest(self):
                self.channel.queue_delete("missing")
    """).run(COMPARE, passed=2, failed=2)
    lines = section(result)
    assert lines.count("  Choice deleting_missing_is_an_error: False in old, True in new") == 2


def test_recordings_are_written_of_the_two_runs_only(
    write_tests: WriteTests, differ: Differ, pytester: pytest.Pytester
) -> None:
    differ(deleting_missing_is_an_error=True)
    write_tests(DELETES_A_MISSING_QUEUE).run(COMPARE, "--amqp-trace=traces", "--amqp-trace-formats=jsonl")
    folder: Path = pytester.path / "traces"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["test_inner-test_it.again-1.jsonl", "test_inner-test_it.jsonl"]


def test_a_debugger_is_not_started_in_more_runs(write_tests: WriteTests, differ: Differ) -> None:
    differ(deleting_missing_is_an_error=True)
    result = write_tests(DELETES_A_MISSING_QUEUE).run(
        COMPARE, "--pdb", "--pdbcls=compat_tests.plugin.silent:Debugger"
    )
    lines = section(result)
    assert "  No cause: no cause was looked for, because --pdb would stop in every run." in lines


def test_compare_says_that_no_test_took_a_broker(write_tests: WriteTests, differ: Differ) -> None:
    differ()
    result = write_tests("def test_it(): pass").run(COMPARE)
    assert section(result) == ["no test took a broker from a fixture, without a personality of its own"]


RANDOM_NAMES = """
    import json
    import os

    def name():
        return f"n{os.urandom(3).hex()}"

    def test_only_registered_host_names_are_resolved(amqp_url):
        queue, exchange, key, dead = name(), name(), name(), name()
        parameters = pika.URLParameters(amqp_url)
        parameters.client_properties = {"connection_name": name()}
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.exchange_declare(exchange, "topic")
            channel.queue_declare(dead)
            to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
            channel.queue_declare(queue, arguments=to_dead)
            channel.queue_bind(queue, exchange, key)
            message = name()
            properties = pika.BasicProperties(
                reply_to=dead,
                correlation_id=message,
                message_id=name(),
                app_id=name(),
                type=name(),
                headers={
                    **{"id": name(), "CC": [queue], "x-request": {"span": name()}},
                    "pid": int.from_bytes(os.urandom(2), "big") + 1000,
                },
            )
            channel.basic_publish("", dead, json.dumps({"id": name()}).encode(), properties)
            channel.basic_publish(exchange, key, f"{message} for {queue}".encode(), properties)
            # Of an empty queue: what pika does with a message when it cancels depends on when it reads it.
            tag, empty = name(), name()
            channel.queue_declare(empty)
            channel.basic_consume(empty, lambda *delivery: None, consumer_tag=tag)
            channel.basic_cancel(tag)
            channel.queue_unbind(queue, exchange, key)
            other = connection.channel()
            with pytest.raises(pika.exceptions.ChannelClosedByBroker):
                other.queue_bind(name(), exchange)
            try:
                channel.queue_delete(DELETED)
            except pika.exceptions.ChannelClosedByBroker:
                pass
"""


def test_names_that_clients_choose_at_random_are_no_difference(
    write_tests: WriteTests, differ: Differ
) -> None:
    differ(**UNNOTICED)
    result = write_tests(RANDOM_NAMES.replace("DELETED", "queue")).run(COMPARE, passed=2)
    assert section(result) == ["1 test ran on both, 1 with no difference"]


def test_the_first_difference_is_found_behind_random_names(write_tests: WriteTests, differ: Differ) -> None:
    differ(deleting_missing_is_an_error=True, **UNNOTICED)
    lines = section(write_tests(RANDOM_NAMES.replace("DELETED", "name()")).run(COMPARE))
    start = lines.index("    on old:")
    assert lines[start + 1 : start + 3] == ["      c1 <- 1 queue.delete-ok message_count=0", "    on new:"]
    assert lines[start + 3].startswith("      c1 <- 1 channel.close reply_code=404 ")
    assert "  Choice deleting_missing_is_an_error: False in old, True in new" in lines


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_one_name_twice_is_not_the_same_as_two_names(
    write_tests: WriteTests, differ: Differ, first: str, second: str
) -> None:
    """The test declares the queue of the message again, or another one; only the names tell which."""
    differ(longest_name=100, **UNNOTICED)
    lines = section(
        write_tests(f"""
            import os

            def test_it(pika_connection):
                a, b = os.urandom(3).hex(), os.urandom(3).hex()
                channel = pika_connection.channel()
                channel.queue_declare(a)
                channel.queue_declare(b)
                try:
                    pika_connection.channel().queue_declare("x" * 200)
                    chosen = {first}
                except pika.exceptions.ChannelClosedByBroker:
                    chosen = {second}
                channel.queue_declare(a)
                channel.queue_declare(chosen)
    """).run(COMPARE)
    )
    assert "  Choice longest_name: 255 in old, 100 in new" in lines


class TestConversations:
    """Two conversations by themselves."""

    @staticmethod
    def parted(first: list[str], second: list[str]) -> int | None:
        """The index of the first line that differs, of queues that a client declares one after the other."""

        def said(names: list[str]) -> Conversation:
            lines = [
                _line(at, f"c1 -> 1 queue.declare queue={name!r}", [name]) for at, name in enumerate(names)
            ]
            return {(0, "c1", "received", 1): lines}

        parted = parting(said(first), said(second), {})
        if parted is None:
            return None
        turn = parted.first or parted.second
        assert turn is not None
        return turn.index

    def test_each_name_is_paired_with_exactly_one_name_of_the_second_run(self) -> None:
        with cases() as case:
            for first, second, expected in (
                ("abab", "xyxy", None),
                ("abab", "xyxx", 3),
                ("abaa", "xyxy", 3),
                ("abb", "xyx", 2),
                ("ab", "ba", None),
                ("aba", "baa", 2),
                ("ab", "abc", 2),
                ("", "", None),
            ):
                with case(f"{first} {second}"):
                    assert self.parted(list(first), list(second)) == expected
                    assert self.parted(list(second), list(first)) == expected

    @examples(200)
    @given(st.lists(st.integers(0, 5), max_size=12), st.permutations(range(6)))
    def test_other_names_are_no_difference_and_one_name_for_two_is(
        self, numbers: list[int], others: list[int]
    ) -> None:
        names = [f"a{number}" for number in numbers]
        assert self.parted(names, [f"b{others[number]}" for number in numbers]) is None
        two = sorted(set(numbers))[:2]
        merged = [f"b{two[0] if number in two else number}" for number in numbers]
        if len(two) == 2:
            first_of_each = [numbers.index(number) for number in two]
            assert self.parted(names, merged) == max(first_of_each)

    def test_reserved_names_stand_for_themselves(self) -> None:
        assert self.parted(["amq.topic"], ["amq.direct"]) == 0
        assert self.parted(["amq.gen-a"], ["amq.gen-b"]) is None

    def test_a_name_within_another_text_is_compared_as_the_field_of_that_name(self) -> None:
        def said(name: str, text: str) -> Conversation:
            return {
                (0, "c1", "received", 1): [_line(0, f"c1 -> 1 queue.declare queue={name!r}", [name])],
                (0, "c1", "sent", 1): [_line(1, f"c1 <- 1 channel.close {text}", [])],
            }

        def differs(first: str, second: str) -> bool:
            return parting(said("q-1", first), said("q-2", second), {}) is not None

        assert not differs("no queue 'q-1' in vhost '/'", "no queue 'q-2' in vhost '/'")
        assert differs("no queue 'q-1' in vhost '/'", "no queue 'q-3' in vhost '/'")
        assert differs("no queue 'q-1' in vhost '/'", "no queue 'q-1' in vhost '/'x")

    def test_words_that_look_random_are_names_and_other_texts_are_compared(self) -> None:
        def said(body: bytes) -> Conversation:
            line = _line(0, f"c1 -> 1 body {body!r}", _random_words(body))
            return {(0, "c1", "received", 1): [line]}

        with cases() as case:
            for first, second, differs in (
                (b"ok", b"failed", True),
                (b"price 10", b"price 12", True),
                (b"status ok of n3f2a1b", b"status failed of n9c8e7d", True),
                (b"n3f2a1b for 7d9e0c2", b"n9c8e7d for 1a2b3c4", False),
                (b"n3f2a1b and n3f2a1b", b"n9c8e7d and 1a2b3c4", True),
                (b'{"id": 384756123}', b'{"id": 917263540}', False),
                (b'{"id": "nabcdef"}', b'{"id": "n9c8e7d"}', False),
                (b"\xff\x01\x02", b"\xfe\x03\x04", False),
            ):
                with case(f"{first!r} {second!r}"):
                    assert (parting(said(first), said(second), {}) is not None) is differs
