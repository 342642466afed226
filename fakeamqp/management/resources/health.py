"""Health checks: 200 if all is well, and 503 with the reason if it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.management.acting import OWNER, authorise
from fakeamqp.management.errors import absent, bad_request
from fakeamqp.management.resource import HttpAnswer, InVirtualHost, Resource
from fakeamqp.management.resources.overview import listeners
from fakeamqp.model.messages.message import Message, plain_properties
from fakeamqp.model.names import NODE
from fakeamqp.model.queues import QueueDeclaration

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall, Handler
    from fakeamqp.model.state import BrokerState

_ALIVENESS = "aliveness-test"
_UNITS = ("day", "days", "week", "weeks", "month", "months", "year", "years")
_PROTOCOLS = {"amqp091": "amqp", "amqp0.9.1": "amqp", "amqp0-9-1": "amqp", "amqps": "amqp/ssl"}


def _failed(**facts: Any) -> HttpAnswer:
    return HttpAnswer(503, {"status": "failed", **facts})


def _well(_: ApiCall) -> object:
    return {"status": "ok"}


def _alarms(call: ApiCall, where: str = "in the cluster") -> object:
    def question(state: BrokerState) -> str | None:
        return state.blocked_reason

    reason = call.management.read(question)
    if reason is None:
        return {"status": "ok"}
    alarms = [{"node": NODE, "resource": "memory" if "memory" in reason else reason}]
    return _failed(reason=f"There are alarms in effect {where}", alarms=alarms)


def _certificates(call: ApiCall) -> object:
    if call.names["unit"] not in _UNITS:
        raise bad_request("Time unit not recognised. Supported units: days, weeks, months, years.")
    try:
        int(call.names["within"])
    except ValueError:
        raise bad_request("Invalid expiration value.") from None
    if call.management.speaks_tls:
        raise bad_request("fakeamqp does not look at the dates of its certificates")
    return {"status": "ok"}


def _port(call: ApiCall) -> object:
    try:
        wanted = int(call.names["port"])
    except ValueError:
        raise bad_request("Invalid port") from None
    ports = [each["port"] for each in listeners(call)]
    if wanted in ports:
        return {"status": "ok", "port": wanted}
    return _failed(reason="No active listener", missing=wanted, ports=ports)


def _protocol(call: ApiCall) -> object:
    asked = call.names["protocol"].lower()
    protocols = [each["protocol"] for each in listeners(call)]
    names = call.choices.names_protocols
    known = _PROTOCOLS.get(asked, asked)
    if known in protocols:
        return {"status": "ok", "protocols": protocols} if names else {"status": "ok", "protocol": known}
    missing = [asked] if names else asked
    return _failed(reason="No active listener", missing=missing, protocols=protocols)


def _single_node(_: ApiCall) -> object:
    return {"status": "ok", "reason": "single node cluster"}


def _aliveness(call: ApiCall) -> object:
    """This broker is alive if it answers. Some versions of RabbitMQ send a message through a queue."""

    def use_a_queue(state: BrokerState) -> None:
        host = call.virtual_host(state)
        if not call.choices.checks_aliveness_with_queue:
            return
        authorise(call, state, "configure", _ALIVENESS)
        queue = host.queues.declare(_ALIVENESS, QueueDeclaration())
        host.publish(Message("", _ALIVENESS, plain_properties(), b"test_message"))
        if queue.get(OWNER, no_ack=True) is not None:
            for name in ("get_no_ack", "deliver_get"):
                call.management.statistics.of_message(name, virtual_host=host.name, queue=queue.name)

    call.management.change(use_a_queue)
    return {"status": "ok"}


def _check(path: str, handler: Handler = _well, *, new: bool = False) -> Resource:
    return Resource(
        f"health/checks/{path}",
        get=handler,
        vhost=InVirtualHost.SEE,
        exists=lambda choices: choices.has_new_checks or not new,
    )


def _node(call: ApiCall) -> object:
    if call.names.get("node", NODE) != NODE:
        raise absent()
    return {"status": "ok"}


RESOURCES = (
    Resource("healthchecks/node", get=_node),
    Resource("healthchecks/node/{node}", get=_node),
    Resource("aliveness-test/{vhost}", get=_aliveness),
    _check("alarms", _alarms),
    _check("local-alarms", lambda call: _alarms(call, "on the node")),
    _check("certificate-expiration/{within}/{unit}", _certificates),
    _check("port-listener/{port}", _port),
    _check("protocol-listener/{protocol}", _protocol),
    _check("virtual-hosts"),
    _check("node-is-quorum-critical", _single_node),
    _check("ready-to-serve-clients", new=True),
    _check("below-node-connection-limit", new=True),
    _check("is-in-service", new=True),
    _check("quorum-queues-without-elected-leaders/all-vhosts", new=True),
    _check("quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}", new=True),
    _check("quorum-queues-without-elected-leaders/vhost/{vhost}", new=True),
    _check("quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{pattern}", new=True),
    _check("metadata-store/initialized", new=True),
    _check("metadata-store/initialized/with-data", new=True),
)
