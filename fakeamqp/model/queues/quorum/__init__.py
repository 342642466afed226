"""A quorum queue as clients see it: the guarantees of a classic queue, other rules.

`queue` is the queue itself. Every other module has one task: `consumers` (the order of consumers, the single
active one), `requeueing` (the place of returned messages), `parked` (messages that cannot be delivered now,
with `retries`), `overflow` (limits), `expiry` (of messages), `consumer_timeouts` (deliveries that stay
unsettled too long), `idle_expiry` (of the queue), `unsupported` (operations that quorum queues refuse).

Source: RabbitMQ's documentation, otherwise measurements or its source code. `QuorumChoices` has the
differences between its versions.
"""

from fakeamqp.model.queues.quorum.queue import QuorumQueue

__all__ = ["QuorumQueue"]
