"""What is done otherwise where AMQP 0-9 is spoken: the part of a personality that is about that.

RabbitMQ answers the header of 0-9 and knows little of what it promises. The personalities named after it do
what the clients written for 0-9 expect; `spec` does what the text says.
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
    """Named choices; the defaults are what 0-9 clients in the field get on with."""

    # --- access --------------------------------------------------------------------------------------
    checks_tickets: bool = False
    """access/always-check, domain.access-ticket/*: otherwise any ticket is as good as any other, 0 included,
    and whoever asks for one gets it."""

    # --- connection ----------------------------------------------------------------------------------
    checks_paths: bool = False
    """domain.path/syntax: the name of a virtual host begins with a slash, and so on."""

    # --- requests and responses ----------------------------------------------------------------------
    batches_responses: bool = False
    """response/identical-only: equal responses to requests in a row go as one. qpid-python looks at the
    number of the first request only, and waits for a response to the others for ever."""
    answers_every_request: bool = False
    """request/every-request-answered: message.ok answers the request of a method that has no answer of its
    own. qpid-python takes that for the answer to its next request."""

    # --- exchanges and queues ------------------------------------------------------------------------
    reserved_exchange_name: str = "not-allowed"
    """exchange.declare/exchange-reserved: condition raised where the name of a new one begins with amq."""
    declaring_locked_queue: str = "resource-locked"
    """queue.declare/exclusive-02: condition raised where the queue is exclusive to another connection."""
    exclusive_implies_auto_delete: bool = False
    """queue.declare/exclusive-implies-auto-delete: an exclusive queue goes with its last consumer."""
    failed_bindings_end_connections: bool = False
    """queue.bind/failure, queue.unbind/01: where a binding cannot be, or one to be undone is not there."""

    # --- transactions --------------------------------------------------------------------------------
    rollback_redelivers: bool = True
    """tx.rollback/undoes-acks: what was acknowledged goes to its consumers again, and does not just count as
    unacknowledged."""


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
    """The choices of a personality where AMQP 0-9 is spoken."""
    return choices_of(personality, _USUAL, _RECORDS)
