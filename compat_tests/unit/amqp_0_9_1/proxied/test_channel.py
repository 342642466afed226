"""Numbers of a channel through a proxy, with publishes and deliveries that faults drop, answer or repeat."""

from __future__ import annotations

from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from fakeamqp.model.messages.message import Message, PlainProperties
from fakeamqp.protocols.amqp_0_9_1.proxied.channel import Held, ProxiedChannel


def confirming() -> ProxiedChannel:
    channel = ProxiedChannel(1)
    channel.mode = "confirm"
    return channel


def held(body: bytes) -> Held:
    return Held("q", "c", Message("", "q", PlainProperties(), body))


def deliver(channel: ProxiedChannel, brokers_tag: int) -> int:
    """The client's tag of a delivery; its body is the broker's tag."""
    tag = channel.client_tag(brokers_tag)
    channel.held[tag] = held(b"%d" % brokers_tag)
    return tag


def test_confirm_passes_unchanged_while_all_publishes_pass() -> None:
    channel = confirming()
    for _ in range(3):
        channel.forward_publish()
    assert channel.confirmed(3, multiple=True) is None


def test_confirm_after_a_skipped_publish_has_the_number_of_the_client() -> None:
    channel = confirming()
    channel.forward_publish()
    assert channel.skip_publish() == 2
    channel.forward_publish()
    assert channel.confirmed(2, multiple=False) == [3]


def test_multiple_confirm_does_not_cover_a_skipped_publish() -> None:
    channel = confirming()
    channel.forward_publish()
    channel.skip_publish()
    channel.forward_publish()
    assert channel.confirmed(2, multiple=True) == [1, 3]


def test_confirm_of_a_duplicate_does_not_reach_the_client() -> None:
    channel = confirming()
    channel.forward_publish()
    channel.forward_publish(counted=False)
    channel.forward_publish()
    assert channel.confirmed(2, multiple=False) == []
    assert channel.confirmed(3, multiple=True) == [1, 2]


@examples(1000)
@given(
    st.lists(st.sampled_from(("forward", "skip", "duplicate")), max_size=12),
    st.data(),
)
def test_each_forwarded_publish_is_confirmed_once_by_the_number_of_the_client(
    publishes: list[str], data: st.DataObject
) -> None:
    channel = confirming()
    counted = forwarded = 0
    waiting: set[int] = set()
    apart = False
    for each in publishes:
        if each == "skip":
            counted, apart = counted + 1, True
            assert channel.skip_publish() == counted
            continue
        forwarded += 1
        apart = apart or each == "duplicate"
        if each == "forward":
            counted += 1
            waiting.add(counted)
        channel.forward_publish(counted=each == "forward")
    unconfirmed = list(range(1, forwarded + 1))
    told: list[int] = []
    while unconfirmed:
        tag = data.draw(st.sampled_from(unconfirmed))
        multiple = data.draw(st.booleans())
        covered = [number for number in unconfirmed if number <= tag] if multiple else [tag]
        unconfirmed = [number for number in unconfirmed if number not in covered]
        numbers = channel.confirmed(tag, multiple)
        assert (numbers is None) is not apart
        told += covered if numbers is None else numbers
    assert sorted(told) == sorted(waiting)


def test_settlement_passes_unchanged_while_there_are_no_spare_tags() -> None:
    channel = ProxiedChannel(1)
    deliver(channel, 1)
    settled, told = channel.settled(1, multiple=False)
    assert [(tag, each.message.body) for tag, each in settled] == [(1, b"1")]
    assert told is None


def test_spare_tag_shifts_the_tags_of_later_deliveries() -> None:
    channel = ProxiedChannel(1)
    deliver(channel, 1)
    assert channel.spare_tag() == 2
    assert deliver(channel, 2) == 3
    assert channel.settled(3, multiple=False)[1] == [(2, False)]


def test_settlement_of_a_spare_tag_does_not_reach_the_broker() -> None:
    channel = ProxiedChannel(1)
    deliver(channel, 1)
    spare = channel.spare_tag()
    assert channel.settled(spare, multiple=False)[1] == []
    assert not channel.held.keys() & {spare}


def test_settlement_of_reordered_deliveries_has_the_tags_of_the_broker() -> None:
    channel = ProxiedChannel(1)
    first, second = deliver(channel, 1), deliver(channel, 2)
    channel.renumber({first: second, second: first})
    assert channel.settled(first, multiple=False)[1] == [(2, False)]
    assert channel.settled(second, multiple=False)[1] == [(1, False)]


@examples(1000)
@given(
    st.lists(st.sampled_from(("deliver", "spare", "swap", "ack", "ack all up to")), max_size=20), st.data()
)
def test_broker_is_told_of_the_deliveries_that_the_client_settles(
    steps: list[str], data: st.DataObject
) -> None:
    channel = ProxiedChannel(1)
    brokers = 0
    unsettled: set[int] = set()
    """The broker's tags of deliveries that are not settled there."""
    for step in steps:
        tags = sorted(channel.held)
        if step == "deliver":
            brokers += 1
            deliver(channel, brokers)
            unsettled.add(brokers)
        elif step == "spare" and tags and tags[-1] == channel.client_tag(brokers):
            channel.spare_tag()
        elif step == "swap" and len(tags) > 1:
            one, other = data.draw(st.permutations(tags))[:2]
            channel.renumber({one: other, other: one})
        elif step.startswith("ack") and tags:
            tag, multiple = data.draw(st.sampled_from(tags)), step != "ack"
            spares = {each for each in tags if channel.is_spare(each)}
            settled, told = channel.settled(tag, multiple)
            covered = [each for each in tags if each <= tag] if multiple else [tag]
            assert [number for number, _ in settled] == covered
            wanted = [int(each.message.body) for number, each in settled if number not in spares]
            for number, several in [(tag, multiple)] if told is None else told:
                done = {each for each in unsettled if each <= number} if several else {number}
                assert done <= unsettled
                unsettled -= done
                wanted = [each for each in wanted if each not in done]
            assert wanted == []
