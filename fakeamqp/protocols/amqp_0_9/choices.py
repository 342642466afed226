"""The choices of a personality that concern AMQP 0-9 only.

RabbitMQ accepts the protocol header of 0-9, and speaks 0-9-1 after it. The `rabbitmq-*` personalities do the
same, and offer what only 0-9 has as clients written for it expect; `spec` follows the specification.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fakeamqp.model.personality import personality as personality_named
from fakeamqp.model.versions import SPEC, Choices, choice

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality


@dataclass(frozen=True, init=False)
class Amqp09Choices(Choices):
    """Named choices; the defaults work with existing 0-9 clients."""

    # --- RabbitMQ's 0-9-1 ----------------------------------------------------------------------------
    as_in_rabbitmq: bool = choice(True, {SPEC: False})
    """What 0-9 shares with 0-9-1 behaves as in RabbitMQ, with its extensions of 0-9-1; channel.open may name
    any out-of-band transport (measured on 4.0.5 and 4.3.6: see docs/amqp-0-9.md). If False, all of 0-9
    follows its specification."""

    # --- access --------------------------------------------------------------------------------------
    checks_tickets: bool = choice(False, {SPEC: True})
    """access/always-check, domain.access-ticket/*: check tickets. If False, every ticket number including 0
    is accepted, and every access.request is granted."""

    # --- connection ----------------------------------------------------------------------------------
    checks_paths: bool = choice(False, {SPEC: True})
    """domain.path/syntax: check the name of a virtual host, which begins with a slash, and so on."""

    # --- requests and responses ----------------------------------------------------------------------
    batches_responses: bool = choice(False, {SPEC: True})
    """response/identical-only: send equal responses to consecutive requests as one. qpid-python reads the
    number of the first request only, and waits for the other responses for ever."""
    answers_every_request: bool = choice(False, {SPEC: True})
    """request/every-request-answered: answer the request of a method that defines no answer with message.ok.
    qpid-python takes that for the answer to its next request."""

    # --- exchanges and queues ------------------------------------------------------------------------
    reserved_exchange_name: str = choice("not-allowed", {SPEC: "access-refused"})
    """exchange.declare/exchange-reserved: condition raised if the name of a new exchange begins with amq."""
    declaring_locked_queue: str = choice("resource-locked", {SPEC: "channel-error"})
    """queue.declare/exclusive-02: condition raised if the queue is exclusive to another connection."""
    exclusive_implies_auto_delete: bool = choice(False, {SPEC: True})
    """queue.declare/exclusive-implies-auto-delete: an exclusive queue is deleted with its last consumer."""
    failed_bindings_end_connections: bool = choice(False, {SPEC: True})
    """queue.bind/failure, queue.unbind/01: a failed bind, or an unbind of a missing binding, closes the
    connection and not only the channel."""

    # --- transactions --------------------------------------------------------------------------------
    rollback_redelivers: bool = choice(True, {SPEC: False})
    """tx.rollback/undoes-acks: redeliver messages whose acknowledgement is rolled back. If False, they only
    count as unacknowledged."""


def letter_of(personality: str | Personality) -> Personality:
    """Return a personality whose connections of 0-9 follow the specification of 0-9, and not RabbitMQ.

    Other protocols stay the same. Unlike in the personality "spec", no method needs an access ticket.

    Args:
        personality: a personality or the name of one, such as "rabbitmq-4.2".

    Raises:
        UnknownPersonality: there is no personality of this name.
    """
    known = personality_named(personality)
    choices = known.extension(Amqp09Choices)
    if not choices.as_in_rabbitmq:
        return known
    followed = replace(choices, as_in_rabbitmq=False)
    return replace(known, extensions={**known.extensions, Amqp09Choices: followed})
