"""The controls of AMQP 0-10; spec/amqp-0-10.toml describes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from fakeamqp.protocols.amqp_0_10.codec.constants import CloseCode, DetachCode
from fakeamqp.protocols.amqp_0_10.codec.errors import FramingError
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import (
    AnyArray,
    AnyMap,
    Bit,
    CommandFragment,
    Control,
    SequenceNo,
    Str8,
    Str16,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Vbin16,
    Vbin32,
)


class ConnectionStart(Control, code=(1, 1), received_by="client", responses="start-ok"):
    server_properties: AnyMap = None
    mechanisms: AnyArray = None
    locales: AnyArray = None


class ConnectionStartOk(Control, code=(1, 2), received_by="server"):
    client_properties: AnyMap = None
    mechanism: Str8 = None
    response: Vbin32 = None
    locale: Str8 = None


class ConnectionSecure(Control, code=(1, 3), received_by="client", responses="secure-ok"):
    challenge: Vbin32 = None


class ConnectionSecureOk(Control, code=(1, 4), received_by="server"):
    response: Vbin32 = None


class ConnectionTune(Control, code=(1, 5), received_by="client", responses="tune-ok"):
    channel_max: Uint16 = None
    max_frame_size: Uint16 = None
    heartbeat_min: Uint16 = None
    heartbeat_max: Uint16 = None


class ConnectionTuneOk(Control, code=(1, 6), received_by="server"):
    channel_max: Uint16 = None
    max_frame_size: Uint16 = None
    heartbeat: Uint16 = None


class ConnectionOpen(Control, code=(1, 7), received_by="server", responses="open-ok redirect"):
    virtual_host: Str8 = None
    capabilities: AnyArray = None
    insist: Bit = False


class ConnectionOpenOk(Control, code=(1, 8), received_by="client"):
    known_hosts: AnyArray = None


class ConnectionRedirect(Control, code=(1, 9), received_by="client"):
    host: Str16 = None
    known_hosts: AnyArray = None


class ConnectionHeartbeat(Control, code=(1, 10)):
    pass


class ConnectionClose(Control, code=(1, 11), received_by="client server", responses="close-ok"):
    reply_code: Annotated[Uint16, CloseCode] = None
    reply_text: Str8 = None


class ConnectionCloseOk(Control, code=(1, 12), received_by="client server"):
    pass


class SessionAttach(Control, code=(2, 1), received_by="server client", responses="attached detached"):
    name: Vbin16 = None
    force: Bit = False


class SessionAttached(Control, code=(2, 2), received_by="server client"):
    name: Vbin16 = None


class SessionDetach(Control, code=(2, 3), received_by="server client", responses="detached"):
    name: Vbin16 = None


class SessionDetached(Control, code=(2, 4), received_by="server client"):
    name: Vbin16 = None
    code: Annotated[Uint8, DetachCode] = None


class SessionRequestTimeout(Control, code=(2, 5), received_by="sender receiver", responses="timeout"):
    timeout: Uint32 = None


class SessionTimeout(Control, code=(2, 6), received_by="sender receiver"):
    timeout: Uint32 = None


class SessionCommandPoint(Control, code=(2, 7), received_by="receiver"):
    command_id: SequenceNo = None
    command_offset: Uint64 = None


class SessionExpected(Control, code=(2, 8), received_by="sender"):
    commands: SequenceSet | None = None
    fragments: Sequence[CommandFragment] | None = None


class SessionConfirmed(Control, code=(2, 9), received_by="sender"):
    commands: SequenceSet | None = None
    fragments: Sequence[CommandFragment] | None = None


class SessionCompleted(Control, code=(2, 10), received_by="sender"):
    commands: SequenceSet | None = None
    timely_reply: Bit = False


class SessionKnownCompleted(Control, code=(2, 11), received_by="receiver"):
    commands: SequenceSet | None = None


class SessionFlush(Control, code=(2, 12), received_by="receiver"):
    expected: Bit = False
    confirmed: Bit = False
    completed: Bit = False


class SessionGap(Control, code=(2, 13), received_by="receiver"):
    commands: SequenceSet | None = None


#: class << 8 | code -> control
CONTROLS: Final[dict[int, type[Control]]] = {each.INDEX: each for each in Control.__subclasses__()}


def decode(data: bytes) -> Control:
    """Read a whole control segment. Raises FramingError for an unknown one; see `Packed.decode`."""
    control = CONTROLS.get(int.from_bytes(data[:2], "big"))
    if control is None or len(data) < 2:
        raise FramingError(f"there is no control with the code 0x{data[:2].hex()}")
    return control.decode(data)
