"""One AMQP 0-9-1 connection of a reader or writer: its login, its channels, and frames for each of them."""

from __future__ import annotations

import re
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_END,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    method_frame,
)
from fakeamqp.protocols.base.codec import FrameError
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, LoginRefused
from fakeamqp.spark.wire.channel import WireChannel, method_of
from fakeamqp.spark.wire.login import BrokerLogin, is_untrusted, login_of, password, without_password
from fakeamqp.spark.wire.refusals import Refusal
from fakeamqp.spark.wire.transport import WireTransport, in_words

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import FieldValue
    from fakeamqp.spark.options import ConnectionOptions

M = TypeVar("M", bound="Method")

_CAPABILITIES: dict[str, FieldValue] = {
    "authentication_failure_close": True,
    "basic.nack": True,
    "connection.blocked": True,
    "consumer_cancel_notify": True,
    "publisher_confirms": True,
}
# The longest time for closing, in seconds.
_GOODBYE = 2.0
_LARGEST_FRAME = 128 << 10
_LARGEST_CHANNEL = 65535
_KINDS = (FRAME_METHOD, FRAME_CONTENT_HEADER, FRAME_BODY, FRAME_HEARTBEAT)
# Reply codes of a login: wrong password; no such virtual host, or no access to it.
_PASSWORD, _VIRTUAL_HOST = 403, 530

_read_frame = FRAME_HEADER.unpack_from
_PAYLOAD = FRAME_HEADER.size


class WireConnection(WireTransport):
    """A connection to the first of several brokers that answers. Only its own thread uses it, except `wake`.

    Contents are not decoded, see `WireChannel`. `WireTransport` has more attributes.

    Attributes:
        options: its options.
        closed: the reply code and text with which the broker has closed the connection; None if it has not.
        blocked: why the broker blocks publishers now; None if it does not.
        frame_max: the largest frame that was agreed on, in bytes.
        channels: the open channels by number.
        leases: the names of the leases that the connection holds, see `fakeamqp.spark.wire.lease`.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        super().__init__()
        self.options = options
        self.closed: Refusal | None = None
        self.blocked: str | None = None
        self.frame_max: int = _LARGEST_FRAME
        self.channels: dict[int, WireChannel] = {}
        self.leases: set[str] = set()
        self._login: BrokerLogin
        self._properties: dict[str, Any] = {}
        self._channel_max: int
        # Methods of the connection itself, and a frame of which bytes are missing.
        self._methods: deque[Method] = deque()
        self._unfinished: list[bytes] = []
        self._missing = 0

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Connect and log in.

        Raises:
            BrokerUnreachable: no broker accepts the connection; the text has the reason of each. Or the
                password file cannot be read now, and could be before.
            LoginRefused: all of them refuse it for a reason that stays.
            OptionError: a file of the options cannot be read.
        """
        refusals: dict[str, str] = {}
        all_stay = True
        try:
            for url in self.options.urls:
                self._login = login_of(url, self.options)
                try:
                    return self._log_in(self._login)
                except (OSError, UnicodeError, ConnectionLost, LoginRefused) as error:
                    said = in_words(error) if self.closed is None else "{} {}".format(*self.closed)
                    refusals[without_password(url)] = said
                    all_stay &= self._stays(error)
                    self.disconnect()
        except BaseException:
            self.abandon()
            raise
        self.abandon()
        kind = LoginRefused if all_stay else BrokerUnreachable
        raise kind("cannot connect to " + "; ".join(f"{url}: {said}" for url, said in refusals.items()))

    def close(self) -> None:
        """Close the connection, wait briefly for the answer, and close the socket. May be called again."""
        if self._socket is not None:
            for channel in self.channels.values():
                channel.discard()
            self._send_method(m.ConnectionClose(reply_code=200, reply_text="bye"))
            with suppress(ConnectionLost):
                self._expect(m.ConnectionCloseOk, _GOODBYE)
        self.abandon()

    def channel(self) -> WireChannel:
        """Open a channel.

        Raises:
            ConnectionLost: if the connection ends before, or the broker does not answer in time.
        """
        self.check()
        numbers = range(1, self._channel_max + 1)
        number = next((each for each in numbers if each not in self.channels), None)
        if number is None:
            raise ConnectionLost(f"the broker allows {self._channel_max} channels, and all of them are open")
        channel = self.channels[number] = WireChannel(self, number, self.options.connect_timeout)
        channel.call(m.ChannelOpen())
        return channel

    @property
    def product(self) -> str:
        """The name of the broker's software."""
        return str(self._properties.get("product", ""))

    @property
    def broker_version(self) -> tuple[int, int]:
        """The first two numbers of the version of RabbitMQ, from the server properties; otherwise 0, 0."""
        numbers = re.match(r"(\d+)\.(\d+)", str(self._properties.get("version", "")))
        if self.product != "RabbitMQ" or numbers is None:
            return 0, 0
        return int(numbers[1]), int(numbers[2])

    @property
    def password_changed(self) -> bool:
        """Whether the password file has another password than the one of this connection.

        Raises:
            BrokerUnreachable: the file cannot be read now.
        """
        if self._socket is None or self.options.password_file is None:
            return False
        return password(self.options) != self._login.password

    # --- login ----------------------------------------------------------------------------------------

    def _log_in(self, login: BrokerLogin) -> None:
        since = time.monotonic()
        self.closed = self.blocked = None
        self._methods.clear()
        self._unfinished.clear()
        self.connect(login, self.options.connect_timeout)
        self.send(PROTOCOL_HEADER)
        start = self._expect(m.ConnectionStart, since=since)
        self._properties = dict(start.server_properties)
        offered = start.mechanisms.decode("latin-1")
        if login.mechanism not in offered.split():
            raise LoginRefused(f"the broker offers no {login.mechanism}, only {offered}")
        client = {"connection_name": self.options.client_name, "product": "fakeamqp.spark"}
        self._send_method(
            m.ConnectionStartOk(
                client_properties={**client, "capabilities": _CAPABILITIES},
                mechanism=login.mechanism,
                response=login.response,
                locale="en_US",
            )
        )
        tune = self._expect(m.ConnectionTune, since=since)
        self.frame_max = min(tune.frame_max or _LARGEST_FRAME, _LARGEST_FRAME)
        self._channel_max = tune.channel_max or _LARGEST_CHANNEL
        heartbeat = tune.heartbeat if login.heartbeat is None else login.heartbeat
        self._send_method(
            m.ConnectionTuneOk(channel_max=self._channel_max, frame_max=self.frame_max, heartbeat=heartbeat)
        )
        self._send_method(m.ConnectionOpen(virtual_host=login.virtual_host))
        self._expect(m.ConnectionOpenOk, since=since)
        self._heartbeat = heartbeat

    def _expect(self, kind: type[M], timeout: float | None = None, since: float | None = None) -> M:
        """The next method of the connection, which has to be of this kind."""
        self.wait_for(
            lambda: self._methods, timeout or self.options.connect_timeout, f"send {kind.NAME}", since=since
        )
        method = self._methods.popleft()
        if not isinstance(method, kind):
            raise ConnectionLost(f"the broker sent {method.NAME} instead of {kind.NAME}")
        return method

    def _stays(self, error: Exception) -> bool:
        """Whether another attempt to log in would fail as well."""
        if self.closed is None:
            return isinstance(error, LoginRefused) or is_untrusted(error)
        code, text = self.closed
        if code == _PASSWORD:
            return self.options.password_file is None  # A file may have another one by then.
        return code == _VIRTUAL_HOST and "limit" not in text  # Limits of connections pass.

    # --- frames ---------------------------------------------------------------------------------------

    def _send_method(self, method: Method) -> None:
        self.send(method_frame(0, method.encode()))

    def _receive(self, octets: bytes) -> None:
        """Cut bytes into frames, together with an unfinished frame of earlier ones."""
        if self._unfinished:
            self._unfinished.append(octets)
            self._missing -= len(octets)
            if self._missing > 0:
                return
            octets, self._unfinished = b"".join(self._unfinished), []
        channels = self.channels
        start = self._missing = 0
        while start + FRAME_OVERHEAD <= len(octets):
            kind, number, size = _read_frame(octets, start)
            stop = start + FRAME_OVERHEAD + size
            if kind not in _KINDS:
                raise FrameError(f"{octets[start : start + 8]!r} is no frame of AMQP 0-9-1")
            if stop > len(octets):
                self._missing = stop - len(octets)
                if size + FRAME_OVERHEAD > self.frame_max:
                    raise FrameError(f"a frame has {size} bytes, more than was agreed on")
                break
            if octets[stop - 1] != FRAME_END:
                raise FrameError(f"a frame ends with 0x{octets[stop - 1]:02x} instead of 0x{FRAME_END:02x}")
            if number in channels:
                if kind == FRAME_METHOD:
                    channels[number].receive_method(octets, start, stop)
                elif kind != FRAME_HEARTBEAT:
                    channels[number].receive_content(kind, octets, start, stop)
            elif number == 0 and kind == FRAME_METHOD:
                self._receive_method(octets[start + _PAYLOAD : stop - 1])
            start = stop
        if start < len(octets):
            self._unfinished = [octets[start:]]

    def _receive_method(self, payload: bytes) -> None:
        method = method_of(payload)
        if isinstance(method, m.ConnectionClose):
            self.closed = Refusal(method.reply_code, method.reply_text)
            self._send_method(m.ConnectionCloseOk())
            self._end(f"{method.reply_code} {method.reply_text}")
        elif isinstance(method, m.ConnectionBlocked):
            self.blocked = method.reason
        elif isinstance(method, m.ConnectionUnblocked):
            self.blocked = None
        else:
            self._methods.append(method)
