from __future__ import annotations

import logging

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, ManualClock, Server
from compat_tests.scripted.octets import cut
from compat_tests.tools.matrix import rows
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER

HEARTBEAT = bytes.fromhex("08 0000 00000000 ce")


def tuned(server: Server, heartbeat: int) -> Client:
    """A client that has sent tune-ok and nothing after it."""
    return server.tuned(channel_max=9, frame_max=8192, heartbeat=heartbeat)


def listen(server: Server, client: Client, seconds: float, step: float = 0.1) -> list[float]:
    """Stay in touch for so long; the times, from now on, at which heartbeats came."""
    came = []
    for number in range(1, round(seconds / step) + 1):
        client.after(step).send_bytes(HEARTBEAT)
        came += [round(number * step, 3) for each in cut(client.take_bytes()) if each.type == 8]
        assert not client.closed
    return came


def beats(server: Server) -> int:
    """How many heartbeats an idle server sends in an interval."""
    return 2 if server.state.personality.heartbeat_ticks else 1


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/heartbeat/format")
def test_a_heartbeat_is_eight_octets(server: Server) -> None:
    assert server.client(heartbeat=1).after(1).take_bytes() == HEARTBEAT * beats(server)


@pytest.mark.deviates("0-9-1/heartbeat/channel-zero#channel")
@pytest.mark.rule("0-9-1/heartbeat/channel-zero#channel")
@pytest.mark.parametrize("channel", [1, 2], ids=["open", "not-open"])
def test_a_heartbeat_on_another_channel_is_an_error(server: Server, channel: int) -> None:
    client = server.client().send_frame(8, channel, b"")
    client.expect_connection_close(501 if server.is_spec else 505, at=(0, 0))


@pytest.mark.rule("0-9/heartbeat/channel-zero#payload", "0-9-1/heartbeat/channel-zero#payload")
def test_a_heartbeat_with_a_payload_is_a_frame_error(client: Client) -> None:
    client.send_frame(8, 0, b"x").expect_connection_close(501)


@pytest.mark.rule("0-9-1/heartbeat/discard-if-unsupported")
def test_heartbeats_on_connection_without_heartbeat_interval_are_discarded(server: Server) -> None:
    client = server.client(heartbeat=0)
    client.send_bytes(HEARTBEAT * 3).expect_nothing()
    client.declare("still-served")


@pytest.mark.rule("0-9-1/heartbeat/discard-if-unsupported")
def test_heartbeat_between_frames_of_a_content_is_accepted(client: Client) -> None:
    client.declare("q").send(m.BasicPublish(routing_key="q")).send_bytes(HEARTBEAT)
    client.send_frame(2, 1, bytes.fromhex("003c 0000 0000000000000002 0000")).send_frame(3, 1, b"a")
    assert client.send_bytes(HEARTBEAT).send_frame(3, 1, b"b").fetch("q").body == b"ab"


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/heartbeat/start-after-tune#sends")
def test_the_server_sends_heartbeats_from_tune_ok_on(server: Server) -> None:
    assert tuned(server, heartbeat=1).after(1).take_bytes() == HEARTBEAT * beats(server)


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/heartbeat/start-after-tune#expects")
def test_client_silent_after_tune_ok_is_disconnected(server: Server) -> None:
    assert tuned(server, heartbeat=1).after(3).connection.aborted


@pytest.mark.rule("0-9-1/heartbeat/interval")
def test_spec_personality_sends_one_heartbeat_in_each_idle_interval(spec: Server) -> None:
    client = spec.client(heartbeat=1)
    times = listen(spec, client, 3.5)
    assert len(times) == 3
    assert all(later - earlier <= 1 for earlier, later in zip([0, *times], times, strict=False))


@pytest.mark.needs("virtual time")
@pytest.mark.deviates("0-9-1/heartbeat/interval")
@pytest.mark.parametrize("heartbeat", [1, 2, 3])
def test_rabbitmq_sends_one_heartbeat_in_each_idle_half_interval(rabbitmq: Server, heartbeat: int) -> None:
    # Measured on 4.0.5 and 4.3.6: 0.5, 1.0, 1.5 ... for 1 s; 1.5, 3.0, 4.5 ... for 3 s.
    client = rabbitmq.client(heartbeat=heartbeat)
    half = heartbeat / 2
    assert listen(rabbitmq, client, 4 * heartbeat) == [half * number for number in range(1, 9)]


@pytest.mark.needs("virtual time")
@pytest.mark.deviates("0-9-1/heartbeat/any-octet-counts#sent", "0-9-1/heartbeat/interval")
@rows("period, times", (0.6, [1.0]), (1.3, [1.0, 5.0]), (2.2, [1.0, 2.0, 4.0, 6.0]), ids=repr)
def test_rabbitmq_sends_no_heartbeat_after_half_interval_with_data_except_the_first(
    rabbitmq: Server, period: float, times: list[float]
) -> None:
    # Measured on 4.0.5 and 4.3.6: an answer every 0.6, 1.3 or 2.2 s, an interval of 2 s.
    client = rabbitmq.client(heartbeat=2)
    came = []
    for tenth in range(1, 76):
        rabbitmq.advance(0.1)
        came += [tenth / 10 for each in cut(client.take_bytes()) if each.type == 8]
        if not tenth % round(period * 10):
            client.qos(1)
    assert came == times


@pytest.mark.rule("0-9-1/heartbeat/any-octet-counts#sent", "0-9-1/heartbeat/interval")
def test_spec_personality_sends_no_heartbeats_while_it_sends_data(spec: Server) -> None:
    client = spec.client(heartbeat=1)
    for _ in range(40):
        client.after(0.1).declare("q").expect_nothing()


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/heartbeat/interval")
@pytest.mark.parametrize("moment", [0.1, 0.4, 0.6, 0.9])
def test_a_server_that_falls_idle_sends_a_heartbeat_within_an_interval(server: Server, moment: float) -> None:
    client = server.client(heartbeat=1)
    client.after(moment).take_bytes()
    client.declare("q")
    server.advance(1)
    assert HEARTBEAT in client.take_bytes()


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/heartbeat/any-octet-counts#received")
def test_any_method_of_client_restarts_heartbeat_timeout(server: Server) -> None:
    client = server.client(heartbeat=1)
    for _ in range(20):
        assert not client.after(0.5).send(m.QueueDeclare(queue="q")).closed


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/heartbeat/any-octet-counts#received")
def test_part_of_a_frame_restarts_heartbeat_timeout(server: Server) -> None:
    client = server.client(heartbeat=1)
    for octet in HEARTBEAT:
        assert not client.after(0.9).send_bytes(bytes((octet,))).closed


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/heartbeat/missed-two#closes", "0-9-1/heartbeat/missed-two#logs")
def test_connection_is_aborted_without_close_method_after_two_silent_intervals(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    client = server.client(heartbeat=10)
    other = server.client().declare("q").publish(routing_key="q")
    client.get("q")
    assert not client.after(19.9).closed
    assert client.after(10.1).connection.aborted
    assert {each.type for each in client.inbox} == {8}
    assert "missed heartbeats from client, timeout: 10s" in caplog.text
    assert caplog.records[-1].levelno >= logging.WARNING
    assert other.count("q") == 1, "what it held goes back"


@pytest.mark.needs("virtual time", "settings")
@pytest.mark.parametrize("interval", [1, 10])
def test_time_in_which_broker_is_busy_does_not_count_as_silence(server: Server, interval: int) -> None:
    client = server.client(heartbeat=interval)
    server.advance(1.1 * interval)
    server.state.operations.busy_seconds += 40
    assert not client.after(0.9 * interval + 35).closed
    assert not client.send_bytes(HEARTBEAT).after(1.9 * interval).closed
    assert client.after(3 * interval + 5).connection.aborted


@pytest.mark.rule("0-9-1/heartbeat/missed-two#closes")
@pytest.mark.parametrize("moment", [0, 0.25, 5, 9.75, 10])
def test_spec_aborts_two_intervals_after_the_last_received_octet(spec: Server, moment: float) -> None:
    client = spec.client(heartbeat=10).after(moment).send_bytes(HEARTBEAT[:1])
    assert not client.after(19.75).closed
    assert client.after(0.25).connection.aborted


@pytest.mark.needs("virtual time")
@pytest.mark.deviates("0-9-1/heartbeat/missed-two#closes")
@pytest.mark.parametrize(("moment", "end"), [(0, 6), (1.5, 6), (2.5, 8), (3.75, 8), (4.25, 10)])
def test_rabbitmq_checks_once_per_interval_and_aborts_after_two_checks_without_data(
    rabbitmq: Server, moment: float, end: float
) -> None:
    # Measured on 4.0.5 and 4.3.6 for 2 s: the end comes 2 to 3 intervals after the last byte.
    client = rabbitmq.client(heartbeat=2).after(moment).send_bytes(HEARTBEAT[:1])
    assert not client.after(end - moment - 0.125).closed
    assert client.after(0.125).connection.aborted
    assert {each.type for each in client.inbox} == {8}


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/heartbeat/missed-two#closes")
def test_client_silent_for_less_than_two_intervals_is_not_disconnected(server: Server) -> None:
    client = server.client(heartbeat=1)
    for _ in range(10):
        assert not client.after(1.9).send_bytes(HEARTBEAT).closed


@pytest.mark.rule("0-9-1/heartbeat/during-close#sends")
def test_server_sends_heartbeats_until_its_connection_close_is_answered(spec: Server) -> None:
    client = spec.client(heartbeat=1)
    client.send(m.QueueDeclare(), 0).expect(m.ConnectionClose, 0)
    assert len(listen(spec, client, 3.5)) == 3
    client.send(m.ConnectionCloseOk(), 0).expect_silent_end()
    client.after(10).expect_nothing()


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize(("heartbeat", "timeout"), [(0, 30), (5, 5), (60, 30)])
def test_rabbitmq_waits_a_heartbeat_for_close_ok(rabbitmq: Server, heartbeat: int, timeout: int) -> None:
    client = rabbitmq.client(heartbeat=heartbeat)
    client.send(m.QueueDeclare(), 0).expect(m.ConnectionClose, 0)
    assert not client.after(timeout - 0.1).closed
    assert client.after(0.2).closed


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/heartbeat/during-close#expects")
def test_silent_client_is_disconnected_while_connection_close_is_not_answered(server: Server) -> None:
    assert server.client(heartbeat=1).send(m.QueueDeclare(), 0).after(3).connection.aborted


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/heartbeat/zero-disables#sends", "0-9-1/heartbeat/zero-disables#expects")
def test_heartbeat_interval_zero_disables_heartbeats_and_timeouts(server: Server) -> None:
    client = server.client(heartbeat=0)
    client.after(1_000_000).expect_nothing()
    client.declare("still-served")


@pytest.mark.needs("virtual time")
@pytest.mark.rule("0-9-1/heartbeat/client-chooses")
@pytest.mark.parametrize("chosen", [2, 60, 120])
def test_heartbeat_interval_is_the_one_of_tune_ok(server: Server, chosen: int) -> None:
    client = server.client(heartbeat=chosen)
    times = listen(server, client, chosen * 3, step=chosen / 4)
    assert len(times) == 3 * beats(server)
    assert times[1] - times[0] == chosen / beats(server)
    assert not client.after(chosen * 1.9).closed
    assert client.after(chosen * 1.1).closed


# --- where the broker's time is not that of its clients ----------------------------------------------------
class Leaps(ManualClock):
    """Time that leaps, as a test moves it, while clients live by another."""

    holds_peers = False
    target: float | None = None
    _held_since = 0.0

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        if not self.holds_peers:
            self._held_since = self.now()

    def held_since(self) -> float:
        return self._held_since

    def heading(self) -> float:
        return self.now() if self.target is None else max(self.now(), self.target)


class LeapingServer(Server):
    """A broker on such a clock. `peers` is the time that clients live by."""

    def __init__(self) -> None:
        self.clock = Leaps()
        self.peers = ManualClock(now=5.0)
        self.state = BrokerState(self.clock, peer_clock=self.peers)

    def advance(self, seconds: float) -> None:
        self.clock.target = self.clock.now() + seconds
        super().advance(seconds)
        self.clock.target = None

    def live(self, seconds: float) -> None:
        """Let time pass for clients only."""
        target = self.peers.now() + seconds
        while (due := self.state.peer_timers.next_due()) is not None and due <= target:
            self.peers.advance(max(0.0, due - self.peers.now()))
            self.state.peer_timers.run_due()
        self.peers.advance(target - self.peers.now())


@pytest.fixture
def leaping() -> LeapingServer:
    return LeapingServer()


@pytest.mark.needs("own broker")
@pytest.mark.parametrize("heartbeat", [1, 60])
def test_clock_jump_does_not_count_as_silence_of_client(leaping: LeapingServer, heartbeat: int) -> None:
    client = leaping.client(heartbeat=heartbeat)
    leaping.advance(1_000_000)
    assert client.take_bytes() == HEARTBEAT
    client.declare("still-served")


@pytest.mark.needs("own broker")
def test_clock_jump_of_60_intervals_sends_only_one_heartbeat(leaping: LeapingServer) -> None:
    client = leaping.client(heartbeat=60)
    client.take_bytes()
    leaping.advance(3600)
    assert client.take_bytes() == HEARTBEAT
    leaping.advance(3600)
    assert client.take_bytes() == HEARTBEAT


@pytest.mark.needs("own broker")
def test_clock_jump_of_ten_years_runs_at_most_four_timers(leaping: LeapingServer) -> None:
    leaping.client(heartbeat=1)
    ran = 0
    target = leaping.clock.now() + 10 * 365 * 86_400
    leaping.clock.target = target
    while (due := leaping.state.timers.next_due()) is not None and due <= target:
        leaping.clock.advance(max(0.0, due - leaping.clock.now()))
        ran += leaping.state.timers.run_due()
    assert ran <= 4
    assert leaping.state.timers.next_due() is not None


@pytest.mark.needs("own broker")
def test_heartbeat_timers_keep_their_interval_after_clock_jump(leaping: LeapingServer) -> None:
    client = leaping.client(heartbeat=60)
    leaping.advance(3601)
    client.take_bytes()
    dues = [timer.due - leaping.clock.now() for timer in leaping.state.timers.pending()]
    assert dues == [29, 59]
    words = [timer.words for timer in leaping.state.timers.pending()]
    assert words[0].endswith("sends a heartbeat") and words[1].endswith("checks for received bytes")


@pytest.mark.needs("own broker")
def test_clock_moved_by_seconds_sends_heartbeat_every_half_interval(leaping: LeapingServer) -> None:
    client = leaping.client(heartbeat=60)
    client.take_bytes()
    octets = b""
    for _ in range(600):
        leaping.advance(1)
        octets += client.take_bytes()
    assert octets == HEARTBEAT * 20


@pytest.mark.needs("own broker")
def test_silent_client_is_disconnected_while_clients_follow_the_brokers_clock(leaping: LeapingServer) -> None:
    client = leaping.client(heartbeat=60)
    leaping.advance(3600)
    leaping.clock.holds_peers = True
    leaping.advance(179)
    assert not client.closed
    leaping.advance(1)
    assert client.connection.aborted


@pytest.mark.needs("own broker")
def test_silence_is_not_added_up_while_clients_do_not_follow_the_clock(leaping: LeapingServer) -> None:
    client = leaping.client(heartbeat=60)
    for _ in range(5):
        leaping.advance(60)
        leaping.clock.holds_peers = True
        leaping.advance(60)
        leaping.clock.holds_peers = False
    assert not client.closed


@pytest.mark.needs("own broker")
def test_clients_get_heartbeats_by_peer_clock_while_brokers_stands(leaping: LeapingServer) -> None:
    client = leaping.client(heartbeat=60)
    client.take_bytes()
    octets = b""
    for _ in range(60):
        leaping.live(10)
        octets += client.take_bytes()
    assert octets == HEARTBEAT * 20
    assert leaping.clock.now() == 1000


@pytest.mark.needs("own broker")
def test_no_heartbeat_and_no_timer_is_left_after_client_dropped_connection(leaping: LeapingServer) -> None:
    client = leaping.client(heartbeat=60)
    client.drop()
    leaping.advance(3600)
    leaping.live(3600)
    client.expect_nothing()
    assert (len(leaping.state.timers), len(leaping.state.peer_timers)) == (0, 0)


@pytest.mark.parametrize("header", [b"", PROTOCOL_HEADER], ids=["no-header", "no-start-ok"])
class TestHandshakes:
    @pytest.mark.needs("own broker")
    def test_clock_jump_does_not_end_unfinished_handshake(
        self, leaping: LeapingServer, header: bytes
    ) -> None:
        client = leaping.connect()
        client.send_bytes(header)
        leaping.advance(3600)
        leaping.advance(3600)
        assert not client.closed
        client.send_bytes(PROTOCOL_HEADER[len(header) :])
        client.expect(m.ConnectionStart, 0)

    @pytest.mark.needs("own broker")
    def test_unfinished_handshake_is_aborted_after_10_seconds_if_clients_follow_the_clock(
        self, leaping: LeapingServer, header: bytes
    ) -> None:
        client = leaping.connect()
        client.send_bytes(header)
        leaping.clock.holds_peers = True
        leaping.advance(9.9)
        assert not client.closed
        leaping.advance(0.1)
        assert client.connection.aborted
        assert (len(leaping.state.timers), len(leaping.state.peer_timers)) == (0, 0)

    @pytest.mark.needs("own broker")
    def test_unfinished_handshake_is_aborted_after_10_seconds_of_peer_clock(
        self, leaping: LeapingServer, header: bytes
    ) -> None:
        client = leaping.connect()
        client.send_bytes(header)
        leaping.live(9.9)
        assert not client.closed
        leaping.live(0.1)
        assert client.connection.aborted
        assert (len(leaping.state.timers), len(leaping.state.peer_timers)) == (0, 0)


@pytest.mark.needs("own broker")
@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_missing_close_ok_times_out_by_peer_clock_only(leaping: LeapingServer, strict: bool) -> None:
    client = leaping.client()
    leaping.clock.holds_peers = strict
    client.send(m.QueueDeclare(), 0)
    client.expect(m.ConnectionClose, 0)
    leaping.advance(3600)
    assert not client.closed
    leaping.live(30)
    assert client.connection.aborted
