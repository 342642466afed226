from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.octets import cut
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

rule = pytest.mark.rule


def offering(server: Server, **offers: int) -> Server:
    """A broker that offers other limits."""
    return server.varied(**offers)


def begin(server: Server) -> tuple[Client, m.ConnectionTune]:
    """A client that has got tune."""
    client = server.started()
    client.login()
    return client, client.expect(m.ConnectionTune, 0)


def answer(client: Client, channel_max: int, frame_max: int) -> Client:
    """Send tune-ok and open."""
    client.send(m.ConnectionTuneOk(channel_max=channel_max, frame_max=frame_max), 0)
    return client.send(m.ConnectionOpen(virtual_host="/"), 0)


def expect_refusal(client: Client) -> None:
    """The socket ends without a word."""
    client.expect_silent_end()
    assert client.connection not in client.server.state.connections


def smallest(server: Server) -> int:
    return server.state.personality.smallest_frame_max


# --- tune --------------------------------------------------------------------------------------------------
@rule("0-9-1/connection.tune/limits-announced")
def test_tune_proposes_channel_max_2047_frame_max_131072_and_heartbeat_60(server: Server) -> None:
    _, tune = begin(server)
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2047, 131072, 60)


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.tune/frame-max-minimum#before", "0-9-1/connection.tune/frame-max-minimum#agreed")
def test_start_ok_of_4096_octets_is_accepted_and_smaller_frame_max_is_refused(server: Server) -> None:
    client = server.started()
    start_ok = m.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US")
    start_ok.client_properties = {"x": ""}
    start_ok.client_properties = {"x": "x" * (4096 - 8 - len(start_ok.encode()))}
    assert len(client.method_frame(start_ok, 0)) == 4096
    client.send(start_ok, 0).expect(m.ConnectionTune, 0)
    for frame_max in (1, 8, 4095):
        client, _ = begin(server)
        answer(client, 1, frame_max)
        expect_refusal(client)


@pytest.mark.needs("personality of choices")
@rule("0-9-1/connection.tune/frame-max-minimum#proposed")
def test_proposed_frame_max_is_zero_or_at_least_4096(server: Server) -> None:
    assert begin(server)[1].frame_max >= 4096
    assert begin(offering(server, frame_max=0))[1].frame_max == 0


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.tune/frame-max-minimum#before")
def test_frame_before_tune_larger_than_smallest_frame_max_ends_the_socket(server: Server) -> None:
    tolerance = server.state.personality.frame_size_tolerance
    for excess, taken in ((0, True), (tolerance, True), (tolerance + 1, False)):
        client = server.started()
        start_ok = m.ConnectionStartOk(mechanism="PLAIN", response=b"\0guest\0guest", locale="en_US")
        start_ok.client_properties = {"x": ""}
        padding = smallest(server) - 8 - len(start_ok.encode()) + excess
        start_ok.client_properties = {"x": "x" * padding}
        client.send(start_ok, 0)
        if taken:
            client.expect(m.ConnectionTune, 0)
        else:
            expect_refusal(client)


@rule("0-9-1/connection.tune/channel-max-meaning#highest")
def test_spec_personality_refuses_channel_number_above_negotiated_channel_max(spec: Server) -> None:
    client = offering(spec, channel_max=5).client(channels=0, channel_max=5)
    client.open_channel(5).ends(m.ChannelOpen(), 504, channel=6)


@pytest.mark.needs("personality of choices")
@pytest.mark.deviates("0-9-1/connection.tune/channel-max-meaning#highest")
def test_rabbitmq_refuses_more_open_channels_than_negotiated_channel_max(rabbitmq: Server) -> None:
    client = offering(rabbitmq, channel_max=2).client(channels=0, channel_max=2)
    client.open_channel(2).open_channel(3).close_channel(2)
    close = client.open_channel(1).ends(m.ChannelOpen(), 530, channel=2)
    assert close.reply_text == (
        "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"
    )
    assert (close.class_id, close.method_id) == (0, 0)


@pytest.mark.needs("personality of choices")
@rule("0-9/connection.tune/channel-max-meaning#zero", "0-9-1/connection.tune/channel-max-meaning#zero")
def test_channel_max_zero_allows_every_channel_number(server: Server) -> None:
    client = offering(server, channel_max=0).client(channels=0, channel_max=0)
    client.open_channel(65535).open_channel(3000)
    for channel in (3000, 65535):
        assert client.declare_ok("q", channel=channel).queue == "q"


@rule("0-9-1/connection.tune/frame-max-meaning#largest")
def test_frame_max_limits_the_total_size_of_delivered_frames(server: Server) -> None:
    client = server.client(frame_max=131072).declare("q")
    client.publish(bytes(300_000), routing_key="q").send(m.BasicGet(queue="q"))
    assert max(frame.size for frame in cut(client.take_bytes())) == 131072


@pytest.mark.needs("personality of choices")
@rule("0-9/connection.tune/frame-max-meaning#zero", "0-9-1/connection.tune/frame-max-meaning#zero")
def test_frame_max_zero_delivers_large_body_in_one_frame(server: Server) -> None:
    client = offering(server, frame_max=0).client(frame_max=0).declare("q")
    client.publish(bytes(1_000_000), routing_key="q", frame_size=1_000_000).send(m.BasicGet(queue="q"))
    assert [len(frame.payload) for frame in cut(client.take_bytes())][2:] == [1_000_000]


@pytest.mark.needs("personality of choices")
@rule("0-9-1/connection.tune/heartbeat-meaning#delay", "0-9-1/connection.tune/heartbeat-meaning#none")
@pytest.mark.parametrize("seconds", [7, 0])
def test_tune_proposes_the_configured_heartbeat(server: Server, seconds: int) -> None:
    assert begin(offering(server, heartbeat=seconds))[1].heartbeat == seconds


# --- tune-ok -----------------------------------------------------------------------------------------------
@pytest.mark.needs("inspection", "personality of choices")
@rule("0-9-1/connection.tune-ok/channel-max-upper-limit")
@pytest.mark.parametrize("channel_max", [11, 65535])
def test_channel_max_above_the_proposal_ends_the_socket(server: Server, channel_max: int) -> None:
    client, _ = begin(offering(server, channel_max=10))
    answer(client, channel_max, 131072)
    expect_refusal(client)


@pytest.mark.needs("inspection", "personality of choices")
@rule("0-9-1/connection.tune-ok/channel-max-upper-limit")
def test_channel_max_zero_is_refused_when_broker_proposed_a_limit(server: Server) -> None:
    client, _ = begin(offering(server, channel_max=10))
    answer(client, 0, 131072)
    expect_refusal(client)


@pytest.mark.needs("personality of choices")
@rule("0-9-1/connection.tune-ok/channel-max-upper-limit")
def test_channel_max_65535_is_accepted_when_broker_proposed_zero(server: Server) -> None:
    client, _ = begin(offering(server, channel_max=0))
    answer(client, 65535, 131072).expect(m.ConnectionOpenOk, 0)


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.tune-ok/frame-max-minimum")
@pytest.mark.parametrize("frame_max", [1, 100, 4095])
def test_tune_ok_with_frame_max_below_4096_ends_the_socket(server: Server, frame_max: int) -> None:
    client, _ = begin(server)
    answer(client, 10, frame_max)
    expect_refusal(client)


@rule("0-9-1/connection.tune-ok/frame-max-minimum")
@pytest.mark.protocols("0-9-1")
def test_spec_accepts_frame_max_4096_and_rabbitmq_requires_8192(spec: Server, rabbitmq: Server) -> None:
    client, _ = begin(spec)
    answer(client, 10, 4096).expect(m.ConnectionOpenOk, 0)
    client, _ = begin(rabbitmq)
    answer(client, 10, 8191)
    expect_refusal(client)
    client, _ = begin(rabbitmq)
    answer(client, 10, 8192).expect(m.ConnectionOpenOk, 0)


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.tune-ok/frame-max-upper-limit")
@pytest.mark.parametrize("frame_max", [131073, 262144, 2**32 - 1])
def test_frame_max_above_the_proposal_ends_the_socket(server: Server, frame_max: int) -> None:
    client, _ = begin(server)
    answer(client, 10, frame_max)
    expect_refusal(client)


@rule("0-9-1/connection.tune-ok/client-may-reduce#frame-max")
@rule("0-9-1/connection.tune-ok/client-may-reduce#channel-max")
def test_limits_of_tune_ok_below_the_proposal_apply(server: Server) -> None:
    client = server.client(channel_max=1, frame_max=smallest(server)).declare("q")
    client.publish(bytes(20_000), routing_key="q", frame_size=1000).send(m.BasicGet(queue="q"))
    assert max(frame.size for frame in cut(client.take_bytes())) == smallest(server)
    client.send(m.ChannelOpen(), 2).expect(m.ConnectionClose, 0)


@pytest.mark.needs("personality of choices")
@rule("0-9-1/connection.tune-ok/frame-max-zero")
def test_frame_max_zero_is_accepted_when_broker_proposed_zero(server: Server) -> None:
    client, _ = begin(offering(server, frame_max=0))
    answer(client, 10, 0).expect(m.ConnectionOpenOk, 0)


@pytest.mark.needs("inspection")
@rule("0-9-1/connection.tune-ok/frame-max-zero")
def test_frame_max_zero_is_refused_when_broker_proposed_a_limit(server: Server) -> None:
    client, _ = begin(server)
    answer(client, 10, 0)
    expect_refusal(client)


@rule("0-9-1/connection.tune-ok/no-reply")
def test_tune_ok_is_not_answered(server: Server) -> None:
    client, _ = begin(server)
    client.send(m.ConnectionTuneOk(channel_max=10, frame_max=131072), 0).expect_nothing()
    client.perform(m.ConnectionOpen(virtual_host="/"), channel=0)


@rule("0-9-1/connection.tune-ok/no-reply")
def test_connection_open_in_one_write_with_tune_ok_is_answered(server: Server) -> None:
    client, tune = begin(server)
    methods = [m.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0), m.ConnectionOpen(virtual_host="/")]
    payloads = [method.encode() for method in methods]
    client.send_bytes(b"".join(b"\x01\0\0" + len(p).to_bytes(4, "big") + p + b"\xce" for p in payloads))
    client.expect(m.ConnectionOpenOk, 0)
    client.expect_nothing()


@pytest.mark.needs("virtual time", "personality of choices")
@rule("0-9-1/connection.tune-ok/negotiated-lowest#frame-max")
def test_lower_frame_max_of_client_applies_in_both_directions(server: Server) -> None:
    client = offering(server, frame_max=20_000).client(frame_max=10_000)
    client.declare("q").publish(bytes(30_000), routing_key="q", frame_size=10_000 - 8)
    client.send(m.BasicGet(queue="q"))
    assert max(frame.size for frame in cut(client.take_bytes())) == 10_000
    client.publish(bytes(30_000), routing_key="q", frame_size=15_000).expect_end_of_frames()


@pytest.mark.needs("personality of choices")
@rule("0-9-1/connection.tune-ok/negotiated-lowest#channel-max")
def test_lower_channel_max_of_client_applies(server: Server) -> None:
    client = offering(server, channel_max=4).client(channels=2, channel_max=2)
    client.send(m.ChannelOpen(), 3).expect(m.ConnectionClose, 0)
