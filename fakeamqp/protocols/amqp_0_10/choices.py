"""What brokers do otherwise from one another in AMQP 0-10: the part of a personality that is about that.

RabbitMQ does not speak 0-10. The personalities named after it do what Apache's qpidd does (measured), so that
the clients written for that work; `spec` does what the text says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fakeamqp.model.versions import SPEC, Choices, choice


@dataclass(frozen=True, init=False)
class Amqp010Choices(Choices):
    """Named choices; the defaults are qpidd's. Times are seconds, sizes bytes."""

    # --- connection ----------------------------------------------------------------------------------
    channel_max: int = choice(65_534)
    """connection.tune/channel-max."""
    mechanisms: tuple[str, ...] = choice(("ANONYMOUS", "PLAIN", "CRAM-MD5"))
    """connection.start/mechanisms-array: what clients may choose from; EXTERNAL joins over TLS."""
    max_frame_size: int = choice(65_535)
    """connection.tune/max-frame-size-minimum."""
    heartbeat_min: int | None = choice(0)
    """connection.tune/heartbeat-min; None = not named, so that there are no heartbeats."""
    heartbeat_max: int = choice(120)
    """connection.tune/heartbeat-max-permitted-range."""
    speaks_of_failed_handshakes: bool = choice(True, {SPEC: False})
    """connection.start-ok/mechanism-validity, connection.tune-ok/*-upper-limit: close 320 comes first."""

    # --- sessions ------------------------------------------------------------------------------------
    longest_session_timeout: int | None = choice(None)
    """session.request-timeout/maximum-granted-timeout; None = any, for ever included."""
    replies_known_completed: Literal["asked", "always"] = choice("asked", {SPEC: "always"})
    """session.completed/known-completed-reply: only where timely-reply is set, as qpid.messaging needs it."""

    # --- messages ------------------------------------------------------------------------------------
    answers_publishers: bool = choice(False, {SPEC: True})
    """message.transfer/accepts-explicit, message.reject/by-server: accept and reject to publishers."""
    honours_immediate: bool = choice(False, {SPEC: True})
    """message.delivery-properties/immediate."""
    stamps_arrival: bool = choice(False, {SPEC: True})
    """message.delivery-properties/timestamp, message.delivery-properties/expiration: set by the broker."""
    checks_user_id: bool = choice(True)
    """message.message-properties/user-id-authentication."""
    checks_priorities: bool = choice(False, {SPEC: True})
    """message/priority-values: a priority above 9 is illegal-argument. Apache's clients send such."""
    unknown_transfers_are_errors: bool = choice(False, {SPEC: True})
    """message.accept/final: accepting, rejecting or releasing what is not held is illegal-state."""
    set_flow_mode_needs_no_credit: bool = choice(False, {SPEC: True})
    """message.set-flow-mode/mode-switching."""
    browsers_acquire_without_accepting: bool = choice(True, {SPEC: False})
    """message/not-acquired-none: a subscription that need not accept can acquire what it was only shown, for
    good."""
    checks_content_length: bool = choice(False, {SPEC: True})
    """message.message-properties/content-length: one that is not the size of the body is illegal-argument."""
    deleted_queues_end_sessions: bool = choice(False, {SPEC: True})
    """message.subscribe/queue-deletion: at once, and not when the subscription has credit."""
    throttles_with_flow: bool = choice(False, {SPEC: True})
    """message/throttling: publishers are stopped with message.stop and go on with message.flow."""

    # --- declarations --------------------------------------------------------------------------------
    refuses_unknown_arguments: bool = choice(False, {SPEC: True})
    """exchange.declare/arguments-unknown-argument and its kin: not-implemented."""
    reserves_queue_names: bool = choice(False, {SPEC: True})
    """queue.declare/queue-reserved-prefix: amq. is not for clients."""
    reserved_prefixes: tuple[str, ...] = choice(("amq.", "qpid."), {SPEC: ("amq.",)})
    """exchange.declare/exchange-reserved-names: prefixes of exchanges that clients cannot declare."""
    checks_queue_names: bool = choice(False, {SPEC: True})
    """queue/name, queue.declare/no-server-names: names that are empty or begin oddly are illegal-argument."""
    confirms_exclusive_queues: bool = choice(True, {SPEC: False})
    """queue.declare/exclusive-in-use: other sessions may declare such a queue passively."""
    headers_bindings_name_match: bool = choice(True, {SPEC: False})
    """exchange.bind to a headers exchange needs the argument x-match; internal-error is raised without."""
    missing_queue_name: str = choice("illegal-argument", {SPEC: "invalid-argument"})
    """queue.purge/queue-empty-name, message.subscribe/empty-queue-name: condition raised."""
    deleting_unnamed_queue: str = choice("not-found", {SPEC: "invalid-argument"})
    """queue.delete/queue-empty-name: condition raised."""
    unbinding_unknown_key_is_an_error: bool = choice(False, {SPEC: True})
    """exchange.unbind/binding-key-non-existent-binding-key."""

    # --- transactions --------------------------------------------------------------------------------
    selects_once: bool = choice(False, {SPEC: True})
    """tx.select/exactly-once, tx.select/no-dtx."""
    needs_explicit_accepts: bool = choice(False, {SPEC: True})
    """tx.select/explicit-accepts."""
    without_select: str = choice("command-invalid", {SPEC: "illegal-state"})
    """tx.commit/select-required, dtx.select/required: condition raised."""
