"""The fault port of 0-9 connections: requests and responses are numbered in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fakeamqp.protocols.amqp_0_9_1.faults.fault_port import ConfirmingFaultPort

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9.codec.requests import Request, Response

__all__ = ["RequestFaultPort"]


class RequestFaultPort(ConfirmingFaultPort, Protocol):
    """The fault port of one connection of 0-9 or 0-8.

    `drop_request`, `nack_request` and `return_request` count a request that the channel does not receive.
    """

    def drop_request(self, number: int, request: Request) -> None:
        """Count a dropped request; it is never answered."""

    def nack_request(self, number: int, request: Request) -> None:
        """Count a refused request, and answer it with message.reject."""

    def return_request(self, number: int, request: Request) -> None:
        """Count the request of a returned publish, and answer it with message.ok."""

    def drop_response(self, number: int, response: Response) -> None:
        """Count a dropped response; the broker's requests that it answers stay unanswered."""

    def next_request(self, number: int) -> Request:
        """The numbers for one more request to the client; the client's response to it has no effect."""

    def requested_messages(self, number: int, first: int, offset: int) -> tuple[tuple[str, Any], ...]:
        """Queue name and message of each transfer that a response to these requests settles."""

    def held_files(self, number: int, tag: int, multiple: bool) -> tuple[tuple[str, Any], ...]:
        """Queue name and message of each file that a settlement by delivery tag concerns."""
