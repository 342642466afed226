"""Personalities by name, and the types of the keyword arguments of `Broker` and `Proxy`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypedDict

from fakeamqp.lazy import on_first_use
from fakeamqp.model.personality.keywords import PersonalityChoices as PersonalityChoices

if TYPE_CHECKING:
    import os
    import ssl

    from fakeamqp.broker import Definitions
    from fakeamqp.endpoint import Runtime
    from fakeamqp.model.access import Accounts
    from fakeamqp.model.limits import Bounds
    from fakeamqp.model.personality import PERSONALITIES as PERSONALITIES, Personality
    from fakeamqp.model.personality.variants import ChoiceDifference as ChoiceDifference
    from fakeamqp.model.versions import PersonalityName as PersonalityName
    from fakeamqp.runtime.clock.handle import Instant, Mode
    from fakeamqp.runtime.tls import ServerTLS
    from fakeamqp.trace.recording import Recording
else:
    __getattr__, __dir__ = on_first_use(__name__, ("BrokerArguments", "PersonalityChoices", "ProxyArguments"))


class BrokerArguments(TypedDict, total=False):
    """All arguments of `Broker`, for functions that pass them on."""

    host: str
    port: int
    personality: PersonalityName | Personality
    clock: Mode
    now: Instant | None
    tls: bool | ServerTLS
    users: Accounts | None
    virtual_hosts: Iterable[str]
    definitions: Definitions | None
    seed: int | str | None
    races: bool | int | None
    permit: Iterable[str]
    deny: Iterable[str]
    history: int
    trace: int
    memory_limit: int | Literal["auto"] | None
    bounds: Bounds | None
    management: bool
    management_port: int | None
    management_hosts: Iterable[str]
    control: bool
    control_port: int | None
    runtime: Runtime


class ProxyArguments(TypedDict, total=False):
    """All arguments of `Proxy` but the first, for functions that pass them on."""

    host: str
    port: int
    tls: bool | ServerTLS
    to_tls: ssl.SSLContext | None
    seed: int | str | None
    history: int
    trace: int
    record: str | os.PathLike[str] | Recording | None
    runtime: Runtime
    control: bool
    control_port: int | None
