"""What the machine of `test_chaos_machine` has found: faults that had not ended when they were removed."""

from __future__ import annotations

import pytest

from compat_tests.fuzz.chaos_world import ORDERS, TARGETS, WORK, World
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

PLAIN = TARGETS.index(("", "plain", 0))


def publish(world: World, count: int = 1) -> None:
    world.peers[0].publish(PLAIN, count, persistent=True, mandatory=False, keep=None)
    world.settle()


@pytest.fixture
def world() -> World:
    world = World((PLAIN,))
    for peer in world.peers:
        world.bring_back(peer)
    return world


def test_a_publish_that_silence_has_swallowed_keeps_its_place_among_the_confirms(world: World) -> None:
    world.faults.on("basic.publish").once().disconnect("silence")
    publish(world, 3)
    world.faults.clear()
    world.settle()
    channel = world.peers[0].channels[ORDERS]
    assert (channel.settled, channel.unconfirmed) == ({2, 3}, {1: 1})


@pytest.mark.parametrize("method", ["basic.publish", "confirm"])
@pytest.mark.parametrize("how", ["silence", "reset"])
def test_delayed_disconnect_of_a_removed_rule_does_not_happen(world: World, method: str, how: str) -> None:
    link = world.peers[0].link
    world.faults.on(method).once().delay(1.0).disconnect(how)
    publish(world)
    assert not world.books.confirmed
    world.faults.clear()
    world.settle()
    assert world.books.confirmed == {1}
    assert world.peers[0].link is link
    world.check_faults_are_gone()


def test_faults_made_while_faults_are_cleared_are_cleared_as_well(world: World) -> None:
    world.faults.on("basic.ack").disconnect("silence")
    held = world.faults.on("basic.consume").hold()
    peer = world.peers[0]
    publish(world)
    peer.get("plain", WORK)
    world.settle()
    peer.consume("plain", WORK)
    peer.settle(0, "acked", multiple=False)
    world.settle()
    assert held.held == 1
    world.faults.clear()
    world.settle()
    world.check_faults_are_gone()
    world.tear_down()


def test_a_confirm_that_silence_has_swallowed_is_not_made_up_for_by_later_ones(world: World) -> None:
    world.peers[0].consume("plain", WORK)
    world.settle()
    world.faults.on("basic.deliver").once().disconnect("silence")
    refusing = world.faults.on("basic.publish").after(1).times(2).nack()
    # All in one go: two are refused while the connection is about to fall silent, and nobody is told.
    publish(world, 3)
    assert refusing.hits == 2
    world.faults.clear()
    publish(world, 2)
    channel = world.peers[0].channels[ORDERS]
    assert set(channel.unconfirmed) == {1, 2, 3}
    assert channel.settled == {4, 5}


@pytest.mark.parametrize("delayed", [False, True])
def test_no_frame_is_sent_after_a_delivery_cut_by_a_fault(world: World, delayed: bool) -> None:
    peer = world.peers[0]
    peer.consume("plain", WORK)
    world.settle()
    late = world.faults.on("confirm").delay(1.0)
    publish(world)
    if not delayed:
        late.remove()
    world.faults.on("basic.deliver").once().cut("method")
    world.faults.on("basic.get").once().close_connection(541)
    link = peer.link
    assert link is not None
    # All in one go: everything else happens while the cut is about to end the connection.
    publishing = peer._one(peer.channels[ORDERS], PLAIN, None, True, False)
    link.connection.receive(publishing)
    peer.get("dead", WORK)
    late.remove()
    world.server.pump()
    assert link.over
    *_, last = link.arrived.split(b"\xce")[:-1]
    assert last[7:11] == b"\x00\x3c\x00\x3c", "the last that was sent is basic.deliver"


def test_channel_flow_ok_is_accepted_only_after_a_channel_flow_fault(world: World) -> None:
    world.faults.channel_flow(channel=ORDERS)
    world.faults.clear()
    world.settle()
    publish(world)
    assert world.books.confirmed == {1}
    # Not so where nobody has asked.
    peer = world.peers[0]
    peer.send(m.ChannelFlowOk(active=True), ORDERS)
    with pytest.raises(AssertionError, match="unimplemented method"):
        world.settle()


def test_confirm_replaced_by_silence_is_never_sent_later(world: World) -> None:
    world.faults.on("confirm").once().disconnect("silence")
    publish(world)
    world.faults.clear()
    strict = TARGETS.index(("", "strict", 0))
    # The third is refused, and no nack may go over the first, which is there.
    world.peers[0].publish(strict, 3, persistent=True, mandatory=False, keep=None)
    world.settle()
    channel = world.peers[0].channels[ORDERS]
    assert (channel.settled, channel.unconfirmed) == ({2, 3, 4}, {1: 1})
