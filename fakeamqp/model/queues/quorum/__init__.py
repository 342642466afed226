"""A quorum queue, as the one client of a cluster sees it: a classic queue's promises, other rules.

`queue` is the queue itself, and everything else here has one duty for it: `consumers` (turns, and the single
active one), `returning` (the place of what came back), `aside` (what nobody can be sent now, with
`retries`), `overflow` (limits), `expiry` (of messages), `overdue` (what consumers hold too long), `use` (how
long it lives unused), `refusals` (what nobody may ask of it).

RabbitMQ: documented; what is not is measured, or read in its sources. What differs between its versions is
in `QuorumChoices`.
"""

from fakeamqp.model.queues.quorum.queue import QuorumQueue

__all__ = ["QuorumQueue"]
