"""The choices of a personality that concern AMQP 0-9 only.

RabbitMQ accepts the protocol header of 0-9, but implements little of 0-9. The `rabbitmq-*` personalities
behave as clients written for 0-9 expect; `spec` follows the specification.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakeamqp.protocols.common.choices import choices_of

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality

__all__ = ["Amqp09Choices", "choices_for"]


@dataclass(frozen=True)
class Amqp09Choices:
    """Named choices; the defaults work with existing 0-9 clients."""

    # --- access --------------------------------------------------------------------------------------
    checks_tickets: bool = False
    """access/always-check, domain.access-ticket/*: check tickets. If False, every ticket number including 0
    is accepted, and every access.request is granted."""

    # --- connection ----------------------------------------------------------------------------------
    checks_paths: bool = False
    """domain.path/syntax: check the name of a virtual host, which begins with a slash, and so on."""

    # --- requests and responses ----------------------------------------------------------------------
    batches_responses: bool = False
    """response/identical-only: send equal responses to consecutive requests as one. qpid-python reads the
    number of the first request only, and waits for the other responses for ever."""
    answers_every_request: bool = False
    """request/every-request-answered: answer the request of a method that defines no answer with message.ok.
    qpid-python takes that for the answer to its next request."""

    # --- exchanges and queues ------------------------------------------------------------------------
    reserved_exchange_name: str = "not-allowed"
    """exchange.declare/exchange-reserved: condition raised if the name of a new exchange begins with amq."""
    declaring_locked_queue: str = "resource-locked"
    """queue.declare/exclusive-02: condition raised if the queue is exclusive to another connection."""
    exclusive_implies_auto_delete: bool = False
    """queue.declare/exclusive-implies-auto-delete: an exclusive queue is deleted with its last consumer."""
    failed_bindings_end_connections: bool = False
    """queue.bind/failure, queue.unbind/01: a failed bind, or an unbind of a missing binding, closes the
    connection and not only the channel."""

    # --- transactions --------------------------------------------------------------------------------
    rollback_redelivers: bool = True
    """tx.rollback/undoes-acks: redeliver messages whose acknowledgement is rolled back. If False, they only
    count as unacknowledged."""


_USUAL = Amqp09Choices()
_RECORDS = {
    "spec": Amqp09Choices(
        checks_tickets=True,
        checks_paths=True,
        batches_responses=True,
        answers_every_request=True,
        reserved_exchange_name="access-refused",
        declaring_locked_queue="channel-error",
        exclusive_implies_auto_delete=True,
        failed_bindings_end_connections=True,
        rollback_redelivers=False,
    )
}


def choices_for(personality: Personality) -> Amqp09Choices:
    """Return the choices of a personality for AMQP 0-9."""
    return choices_of(personality, _USUAL, _RECORDS)
