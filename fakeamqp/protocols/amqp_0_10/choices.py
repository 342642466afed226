"""What brokers do otherwise from one another in AMQP 0-10: the part of a personality that is about that.

RabbitMQ does not speak 0-10. The personalities named after it do what Apache's qpidd does (measured), so that
the clients written for that work; `spec` does what the text says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fakeamqp.protocols.base.choices import choices_of

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality

__all__ = ["Amqp010Choices", "choices_for"]


@dataclass(frozen=True)
class Amqp010Choices:
    """Named choices; the defaults are qpidd's. Times are seconds, sizes bytes."""

    # --- connection ----------------------------------------------------------------------------------
    channel_max: int = 65534
    """connection.tune/channel-max."""
    mechanisms: tuple[str, ...] = ("ANONYMOUS", "PLAIN", "CRAM-MD5")
    """connection.start/mechanisms-array: what clients may choose from; EXTERNAL joins over TLS."""
    max_frame_size: int = 65535
    """connection.tune/max-frame-size-minimum."""
    heartbeat_min: int | None = 0
    """connection.tune/heartbeat-min; None = not named, so that there are no heartbeats."""
    heartbeat_max: int = 120
    """connection.tune/heartbeat-max-permitted-range."""
    speaks_of_failed_handshakes: bool = True
    """connection.start-ok/mechanism-validity, connection.tune-ok/*-upper-limit: close 320 comes first."""

    # --- sessions ------------------------------------------------------------------------------------
    longest_session_timeout: int | None = None
    """session.request-timeout/maximum-granted-timeout; None = any, for ever included."""
    replies_known_completed: Literal["asked", "always"] = "asked"
    """session.completed/known-completed-reply: only where timely-reply is set, as qpid.messaging needs it."""

    # --- messages ------------------------------------------------------------------------------------
    answers_publishers: bool = False
    """message.transfer/accepts-explicit, message.reject/by-server: accept and reject to publishers."""
    honours_immediate: bool = False
    """message.delivery-properties/immediate."""
    stamps_arrival: bool = False
    """message.delivery-properties/timestamp, message.delivery-properties/expiration: set by the broker."""
    checks_user_id: bool = True
    """message.message-properties/user-id-authentication."""
    checks_priorities: bool = False
    """message/priority-values: a priority above 9 is illegal-argument. Apache's clients send such."""
    unknown_transfers_are_errors: bool = False
    """message.accept/final: accepting, rejecting or releasing what is not held is illegal-state."""
    set_flow_mode_needs_no_credit: bool = False
    """message.set-flow-mode/mode-switching."""
    browsers_acquire_without_accepting: bool = True
    """message/not-acquired-none: a subscription that need not accept can acquire what it was only shown, for
    good."""
    checks_content_length: bool = False
    """message.message-properties/content-length: one that is not the size of the body is illegal-argument."""
    deleted_queues_end_sessions: bool = False
    """message.subscribe/queue-deletion: at once, and not when the subscription has credit."""
    throttles_with_flow: bool = False
    """message/throttling: publishers are stopped with message.stop and go on with message.flow."""

    # --- declarations --------------------------------------------------------------------------------
    refuses_unknown_arguments: bool = False
    """exchange.declare/arguments-unknown-argument and its kin: not-implemented."""
    reserves_queue_names: bool = False
    """queue.declare/queue-reserved-prefix: amq. is not for clients."""
    reserved_prefixes: tuple[str, ...] = ("amq.", "qpid.")
    """exchange.declare/exchange-reserved-names: prefixes of exchanges that clients cannot declare."""
    checks_queue_names: bool = False
    """queue/name, queue.declare/no-server-names: names that are empty or begin oddly are illegal-argument."""
    confirms_exclusive_queues: bool = True
    """queue.declare/exclusive-in-use: other sessions may declare such a queue passively."""
    headers_bindings_name_match: bool = True
    """exchange.bind to a headers exchange needs the argument x-match; internal-error is raised without."""
    missing_queue_name: str = "illegal-argument"
    """queue.purge/queue-empty-name, message.subscribe/empty-queue-name: condition raised."""
    deleting_unnamed_queue: str = "not-found"
    """queue.delete/queue-empty-name: condition raised."""
    unbinding_unknown_key_is_an_error: bool = False
    """exchange.unbind/binding-key-non-existent-binding-key."""

    # --- transactions --------------------------------------------------------------------------------
    selects_once: bool = False
    """tx.select/exactly-once, tx.select/no-dtx."""
    needs_explicit_accepts: bool = False
    """tx.select/explicit-accepts."""
    without_select: str = "command-invalid"
    """tx.commit/select-required, dtx.select/required: condition raised."""


_USUAL = Amqp010Choices()
_RECORDS = {
    "spec": Amqp010Choices(
        speaks_of_failed_handshakes=False,
        replies_known_completed="always",
        answers_publishers=True,
        honours_immediate=True,
        stamps_arrival=True,
        checks_priorities=True,
        unknown_transfers_are_errors=True,
        set_flow_mode_needs_no_credit=True,
        throttles_with_flow=True,
        refuses_unknown_arguments=True,
        reserves_queue_names=True,
        reserved_prefixes=("amq.",),
        checks_queue_names=True,
        confirms_exclusive_queues=False,
        headers_bindings_name_match=False,
        missing_queue_name="invalid-argument",
        deleting_unnamed_queue="invalid-argument",
        unbinding_unknown_key_is_an_error=True,
        selects_once=True,
        needs_explicit_accepts=True,
        without_select="illegal-state",
        browsers_acquire_without_accepting=False,
        checks_content_length=True,
        deleted_queues_end_sessions=True,
    )
}


def choices_for(personality: Personality) -> Amqp010Choices:
    """The choices of a personality where AMQP 0-10 is spoken."""
    return choices_of(personality, _USUAL, _RECORDS)
