"""The states of a connection of AMQP 1.0, as a table.

Theory of operation. A connection begins with the SASL header; the broker answers it with the same header and
its mechanisms, and the client sends sasl-init. After the outcome the client sends the AMQP header, which the
broker answers with the same, and then open. Clients may send all of that at once. After an error before open
the broker closes the transport without close, also when it refuses what open asks for. An open connection
stays open until one peer sends close. The peer that sends close discards everything until the close of the
other one arrives.

Events in lower case are frames that the client sends; those in capitals are the broker's own. A session has
no table: it is there from begin until one peer sends end, and frames for a channel without a session are
ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.base.connection_states import ConnectionState

if TYPE_CHECKING:
    from fakeamqp.protocols.base.connection_states import ConnectionTransitions

_C = ConnectionState
_ENDS = {"CLOSE": _C.CLOSING, "LOST": _C.CLOSED}
_LOGIN = {"CHALLENGE": _C.SECURING, "AUTHENTICATED": _C.TUNING, "REFUSE": _C.REFUSED, **_ENDS}
CONNECTION_TRANSITIONS: ConnectionTransitions = {
    _C.STARTING: {"sasl-init": _C.STARTING, **_LOGIN},
    _C.SECURING: {"sasl-response": _C.SECURING, **_LOGIN},
    _C.TUNING: {"protocol-header": _C.TUNED, "REFUSE": _C.REFUSED, **_ENDS},
    _C.TUNED: {"open": _C.OPEN, "REFUSE": _C.REFUSED, **_ENDS},
    _C.REFUSED: {"LOST": _C.CLOSED},
    _C.OPEN: {
        **dict.fromkeys(("begin", "attach", "flow", "transfer", "disposition", "detach", "end"), _C.OPEN),
        **{"close": _C.CLOSED, "REFUSE": _C.REFUSED, **_ENDS},
    },
    _C.CLOSING: {"close": _C.CLOSED, "LOST": _C.CLOSED},
    _C.CLOSED: {},
}
"""State -> event -> next state."""

LOGGING_IN = frozenset((_C.STARTING, _C.SECURING))
BEFORE_OPEN = frozenset((_C.STARTING, _C.SECURING, _C.TUNING, _C.TUNED))
ENDED = frozenset((_C.CLOSING, _C.CLOSED, _C.REFUSED))
