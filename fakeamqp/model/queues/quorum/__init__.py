"""A quorum queue as clients see it: the guarantees of a classic queue, other rules.

`queue` is the queue itself, with its limits and what it refuses. Every other module has one task: `consumers`
(the order of consumers, the single active one), `new_messages` (the messages that were never delivered),
`parked` (returned messages, and those that cannot be delivered now), `expiry` (of messages and of the queue),
`timeouts` (deliveries that stay unsettled too long).

Source: RabbitMQ's documentation, otherwise measurements or its source code. `QuorumChoices` has the
differences between its versions.
"""

from fakeamqp.model.queues.quorum.queue import QuorumQueue

__all__ = ["QuorumQueue"]
