"""Users: accounts, their tags and passwords."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from typing import TYPE_CHECKING, Any

from fakeamqp.management.access import Role
from fakeamqp.management.errors import absent, bad_request, key_missing
from fakeamqp.management.listing import listed
from fakeamqp.management.resource import CREATED, NO_CONTENT, Resource
from fakeamqp.model.access import BadPasswordHash, User
from fakeamqp.model.definitions import hashed_password

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.state import BrokerState

_ALGORITHMS = {"rabbit_password_hashing_sha256": "sha256", "rabbit_password_hashing_sha512": "sha512"}


def _view(user: User) -> dict[str, Any]:
    algorithm, hashed = hashed_password(user)
    return {
        "name": user.name,
        "password_hash": hashed,
        "hashing_algorithm": f"rabbit_password_hashing_{algorithm}",
        "tags": list(user.tags),
        "limits": user.limits.value(),
    }


def _list(call: ApiCall, without_permissions: bool = False) -> object:
    rows = call.management.read_each(
        lambda state: state.access.users.values(),
        lambda user: None if without_permissions and user.permissions else _view(user),
    )
    return listed(call, rows, ("name",))


def _found(call: ApiCall, state: BrokerState) -> User:
    user = state.access.users.get(call.names["name"])
    if user is None:
        raise absent()
    return user


def _get(call: ApiCall) -> object:
    return call.management.read(lambda state: _view(_found(call, state)))


def _put(call: ApiCall) -> object:
    name = call.names["name"]
    fields = call.json
    tags = call.tags()
    if tags is None:
        raise bad_request("tags_not_present")
    password, hashed = fields.get("password"), fields.get("password_hash")
    if password is not None and hashed is not None:
        raise bad_request("both_password_and_password_hash_are_provided")
    password_hash = None if not hashed else _password_hash(hashed, fields.get("hashing_algorithm"))

    def change(state: BrokerState) -> bool:
        known = state.access.users.get(name)
        user = User(
            name,
            password if isinstance(password, str) and password else None,
            tags,
            password_hash=password_hash,
        )
        if known is not None:
            user.permissions = known.permissions
            user.topic_permissions = known.topic_permissions
            user.limits = known.limits
        state.access.add(user)
        return known is None

    return CREATED if call.management.change(change) else NO_CONTENT


def _password_hash(hashed: object, algorithm: object) -> tuple[str, str]:
    try:
        base64.b64decode(str(hashed), validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(["not_base64", str(hashed)]) from None
    known = _ALGORITHMS.get(str(algorithm or "rabbit_password_hashing_sha256"), "sha256")
    try:
        User("", password_hash=(known, str(hashed)))
    except BadPasswordHash as problem:
        # RabbitMQ keeps a hash with which nobody can log in.
        raise bad_request(str(problem)) from None
    return known, str(hashed)


def _delete(call: ApiCall) -> object:
    call.management.read(lambda state: _found(call, state))
    call.management.broker.admin.remove_user(call.names["name"])
    return NO_CONTENT


def _delete_many(call: ApiCall) -> object:
    if "users" not in call.json:
        raise key_missing("users")
    known = call.management.read(lambda state: tuple(state.access.users))
    for name in _names(call.json["users"]):
        if name in known:
            call.management.broker.admin.remove_user(name)
    return NO_CONTENT


def _names(given: object) -> list[str]:
    if not isinstance(given, list):
        raise bad_request(["not_list", given])
    return [name for name in given if isinstance(name, str)]


def _hash(call: ApiCall) -> object:
    """The hash of a password, with a salt of chance."""
    salt = secrets.token_bytes(4)
    digest = hashlib.sha256(salt + call.names["password"].encode("utf-8", "surrogateescape")).digest()
    return {"ok": base64.b64encode(salt + digest).decode()}


def _whoami(call: ApiCall) -> object:
    return {"name": call.visitor.name, "tags": list(call.visitor.tags), "is_internal_user": True}


RESOURCES = (
    Resource("whoami", get=_whoami),
    Resource("users", get=_list, role=Role.ADMINISTRATOR),
    Resource("users/without-permissions", get=lambda call: _list(call, True), role=Role.ADMINISTRATOR),
    Resource("users/bulk-delete", post=_delete_many, role=Role.ADMINISTRATOR),
    Resource("users/{name}", get=_get, put=_put, delete=_delete, role=Role.ADMINISTRATOR),
    Resource("auth/hash_password/{password}", get=_hash),
    Resource("auth", get=lambda _: {"oauth_enabled": False}, exists=lambda choices: choices.tells_oauth),
)
