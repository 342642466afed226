"""What RabbitMQ's HTTP API tells operators of sessions and links (RabbitMQ: measured on 4.3.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.protocols.amqp_1_0.filters.values import Opaque, plain

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_1_0.management import RequestLink, ResponseLink
    from fakeamqp.protocols.amqp_1_0.receiving import ReceivingLink
    from fakeamqp.protocols.amqp_1_0.sending import SendingLink
    from fakeamqp.protocols.amqp_1_0.session import Amqp10Session

_MODES = {0: "unsettled", 1: "settled", None: "mixed", 2: "mixed"}


def session_facts(session: Amqp10Session) -> dict[str, Any]:
    """One session, with its links."""
    return {
        "channel_number": session.channel,
        "handle_max": session.handle_max,
        "next_incoming_id": session.next_incoming_id,
        "incoming_window": session.incoming_window,
        "next_outgoing_id": session.next_outgoing_id,
        "remote_incoming_window": session.remote_window,
        "remote_outgoing_window": session.remote_outgoing_window,
        "outgoing_unsettled_deliveries": len(session.ledger.outstanding),
        "incoming_links": [_incoming(each) for each in session.receiving.values()],
        "outgoing_links": [_outgoing(each) for each in session.sending.values()],
    }


def _incoming(link: ReceivingLink | RequestLink) -> dict[str, Any]:
    return {
        "handle": link.handle,
        "link_name": link.link_name,
        "snd_settle_mode": _MODES[link.mode],
        "target_address": link.address,
        "max_message_size": link.session.choices.largest_message,
        "delivery_count": link.delivery_count,
        "credit": link.credit,
        "unconfirmed_messages": 0,
    }


def _outgoing(link: SendingLink | ResponseLink) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "handle": link.handle,
        "link_name": link.link_name,
        "source_address": link.address,
        "queue_name": link.source_queue,
        "send_settled": link.settled,
        "max_message_size": link.largest_message or "unlimited",
        "filter": [
            {"name": name, "descriptor": _shown(each.descriptor), "value": _shown(each.value)}
            for name, each in link.filters.items()
        ],
        "delivery_count": link.delivery_count,
        "credit": link.credit_left,
    }
    if link.session.choices.shows_consumer_timeout:
        facts["consumer_timeout"] = link.timed_out
    return facts


def _shown(value: Any) -> Any:
    """A value of a filter; RabbitMQ cannot show bytes that are not UTF-8."""
    if isinstance(value, dict):
        return [{"key": name, "value": _shown(each)} for name, each in value.items() if isinstance(name, str)]
    if isinstance(value, list):
        return [_shown(each) for each in value]
    value = plain(value)
    if isinstance(value, Opaque):
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
