"""Class file of 0-9: large messages, which are staged before they are published or delivered.

`handlers` has the methods, `channel_state` the state of the class on a channel: `Files` and `FileConsumer`.
"""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.file.handlers import HANDLERS

__all__ = ["HANDLERS"]
