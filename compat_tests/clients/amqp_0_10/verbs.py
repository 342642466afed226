"""Short forms of the commands that are sent most; each waits until it is done, unless it says otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compat_tests.clients.amqp_0_10.message import Message
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import CreditUnit, FlowMode
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, Struct

__all__ = ["UNLIMITED", "Verbs"]

UNLIMITED = 0xFFFFFFFF


def ids(*messages: Message) -> SequenceSet:
    """The transfers that these messages came by."""
    return SequenceSet.of(*[message.id for message in messages])


class Verbs:
    """What a session can do; `Session` knows how."""

    def call(self, command: Command, **content: Any) -> Any:
        raise NotImplementedError

    def send(
        self,
        command: Command,
        *,
        header: Iterable[Struct] | None = None,
        body: bytes | None = None,
        sync: bool = False,
    ) -> int:
        raise NotImplementedError

    def result(self, id_: int, timeout: float = 0) -> Any:
        raise NotImplementedError

    def sync(self) -> None:
        """Wait until all that was sent is done; what the broker had to send by then has come."""
        self.call(x.ExecutionSync())

    # --- exchanges and queues -------------------------------------------------------------------------

    def declare(self, queue: str, **arguments: Any) -> None:
        self.call(x.QueueDeclare(queue=queue, **arguments))

    def delete(self, queue: str, **arguments: Any) -> None:
        self.call(x.QueueDelete(queue=queue, **arguments))

    def purge(self, queue: str) -> None:
        self.call(x.QueuePurge(queue=queue))

    def query(self, queue: str) -> structs.QueueQueryResult:
        result = self.call(x.QueueQuery(queue=queue))
        assert isinstance(result, structs.QueueQueryResult)
        return result

    def depth(self, queue: str) -> int:
        """How many messages wait in a queue."""
        count = self.query(queue).message_count
        assert count is not None
        return count

    def declare_exchange(self, exchange: str, type: str = "direct", **arguments: Any) -> None:
        self.call(x.ExchangeDeclare(exchange=exchange, type=type, **arguments))

    def delete_exchange(self, exchange: str, **arguments: Any) -> None:
        self.call(x.ExchangeDelete(exchange=exchange, **arguments))

    def bind(self, queue: str, exchange: str, key: str | None = None, **arguments: Any) -> None:
        self.call(
            x.ExchangeBind(queue=queue, exchange=exchange, binding_key=key, arguments=arguments or None)
        )

    def unbind(self, queue: str, exchange: str, key: str | None = None) -> None:
        self.call(x.ExchangeUnbind(queue=queue, exchange=exchange, binding_key=key))

    def bound(self, exchange: str, **which: Any) -> structs.ExchangeBoundResult:
        result = self.call(x.ExchangeBound(exchange=exchange, **which))
        assert isinstance(result, structs.ExchangeBoundResult)
        return result

    # --- messages out ---------------------------------------------------------------------------------

    def publish(
        self,
        body: bytes | None = b"",
        *,
        exchange: str | None = None,
        key: str | None = None,
        headers: dict[str, Any] | None = None,
        properties: structs.MessageProperties | None = None,
        wait: bool = True,
        **delivery: Any,
    ) -> int:
        """Send a message; what else is named is a delivery property. Answers with the id of the transfer.

        Without a key and delivery properties there are no delivery-properties; without headers and
        properties no message-properties; and without any of them no header.
        """
        header: list[Struct] = []
        if key is not None or delivery:
            header.append(structs.DeliveryProperties(routing_key=key, **delivery))
        if headers is not None:
            properties = properties or structs.MessageProperties()
            properties.application_headers = headers
        if properties is not None:
            header.append(properties)
        transfer = x.MessageTransfer(destination=exchange)
        id_ = self.send(transfer, header=header or None, body=body, sync=wait)
        if wait:
            self.result(id_)
        return id_

    # --- messages in ----------------------------------------------------------------------------------

    def subscribe(
        self,
        queue: str | None,
        destination: str | None,
        *,
        credit: int | None = UNLIMITED,
        octets: int | None = UNLIMITED,
        mode: FlowMode | None = None,
        **arguments: Any,
    ) -> None:
        """Subscribe and give credit, unless it is None. The flow mode is a window if it is not set."""
        self.call(x.MessageSubscribe(queue=queue, destination=destination, **arguments))
        if mode is not None:
            self.call(x.MessageSetFlowMode(destination=destination, flow_mode=mode))
        self.flow(destination, credit, octets)

    def flow(self, destination: str | None, credit: int | None = None, octets: int | None = None) -> None:
        """Give credit."""
        for unit, value in ((CreditUnit.MESSAGE, credit), (CreditUnit.BYTE, octets)):
            if value is not None:
                self.call(x.MessageFlow(destination=destination, unit=unit, value=value))

    def stop(self, destination: str) -> None:
        self.call(x.MessageStop(destination=destination))

    def flush(self, destination: str) -> None:
        self.call(x.MessageFlush(destination=destination))

    def cancel(self, destination: str) -> None:
        self.call(x.MessageCancel(destination=destination))

    def accept(self, *messages: Message) -> None:
        self.call(x.MessageAccept(transfers=ids(*messages)))

    def reject(self, *messages: Message) -> None:
        self.call(x.MessageReject(transfers=ids(*messages)))

    def release(self, *messages: Message, set_redelivered: bool = False) -> None:
        self.call(x.MessageRelease(transfers=ids(*messages), set_redelivered=set_redelivered))

    def acquire(self, *messages: Message) -> SequenceSet:
        """Take messages that were only shown; answers with those that could be taken."""
        result = self.call(x.MessageAcquire(transfers=ids(*messages)))
        assert isinstance(result, structs.Acquired) and result.transfers is not None
        return result.transfers
