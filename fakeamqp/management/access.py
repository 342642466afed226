"""Who may do what: basic authentication, and the tags of users."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from fakeamqp.management.errors import Refused, login_failed, not_authorised
from fakeamqp.model.access import check_address
from fakeamqp.model.errors import AuthenticationFailed

if TYPE_CHECKING:
    from fakeamqp.management.context import Management
    from fakeamqp.model.access import User
    from fakeamqp.model.state import BrokerState


class Role(IntEnum):
    """What a tag of a user permits, in ascending order; a user has the highest one of its tags."""

    MANAGEMENT = 1
    """To see and change what the user may use by AMQP."""
    POLICYMAKER = 2
    """And the policies and parameters of the virtual hosts that the user may use."""
    MONITORING = 3
    """And to see what all users do. It does not include the rights of a policymaker."""
    ADMINISTRATOR = 4
    """Everything."""


_ROLES = {role.name.lower(): role for role in Role}


@dataclass(frozen=True)
class Visitor:
    """The user of a request.

    Args:
        name: of the account.
        tags: as the account has them.
        virtual_hosts: those in which the account has permissions.
    """

    name: str
    tags: tuple[str, ...]
    virtual_hosts: frozenset[str]

    @property
    def roles(self) -> frozenset[Role]:
        """The roles that the tags give."""
        return frozenset(_ROLES[tag] for tag in self.tags if tag in _ROLES)

    @property
    def is_administrator(self) -> bool:
        """Whether the user may do everything."""
        return Role.ADMINISTRATOR in self.roles

    @property
    def is_monitor(self) -> bool:
        """Whether the user may see what all users do."""
        return bool(self.roles & {Role.MONITORING, Role.ADMINISTRATOR})

    def has(self, role: Role) -> bool:
        """Whether the user has a role, or one that includes it."""
        if role is Role.MANAGEMENT:
            return bool(self.roles)
        return role in self.roles or self.is_administrator

    def may_use(self, virtual_host: str) -> bool:
        """Whether the user has permissions in a virtual host; no tag replaces them (measured on 4.3.6)."""
        return virtual_host in self.virtual_hosts

    def may_see(self, virtual_host: str) -> bool:
        """Whether the user may see that a virtual host is there, with its policies and connections."""
        return self.is_monitor or virtual_host in self.virtual_hosts


_REFUSALS = {
    Role.MANAGEMENT: "Not management user",
    Role.POLICYMAKER: "User not authorised to access object",
    Role.MONITORING: "Not monitor user",
    Role.ADMINISTRATOR: "Not administrator user",
}


def require(visitor: Visitor, role: Role) -> None:
    """Refuse a user without a role.

    Raises:
        Refused: 401, with RabbitMQ's text.
    """
    if not visitor.has(role):
        raise not_authorised(_REFUSALS[role])


def authenticate(management: Management, authorization: str | None, host: str) -> Visitor:
    """The user that a header `Authorization` names; `host` is the address of the client.

    Raises:
        Refused: 401: there is no header, it is of another scheme, the credentials are wrong, or the user has
            no tag that permits to use the API, or may log in from loopback addresses only.
    """
    credentials = _credentials(authorization)
    if credentials is None:
        # RabbitMQ asks for a login without saying more (measured).
        raise Refused(401, "not_authorized", None, {"www-authenticate": 'Basic realm="RabbitMQ Management"'})
    name, password = credentials

    def log_in(state: BrokerState) -> Visitor | None:
        try:
            user: User = state.access.authenticate(name, password)
        except AuthenticationFailed:
            return None
        try:
            check_address(user, host, state.personality.loopback_users)
        except AuthenticationFailed:
            # Measured on 4.3.6.
            raise not_authorised("User can only log in via localhost") from None
        return Visitor(user.name, user.tags, frozenset(user.permissions))

    visitor = management.read(log_in)
    management.logins[visitor is None] += 1
    if visitor is None:
        raise login_failed()
    require(visitor, Role.MANAGEMENT)
    return visitor


def _credentials(authorization: str | None) -> tuple[str, str] | None:
    if authorization is None:
        return None
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError):
        return None
    name, colon, password = text.partition(":")
    return (name, password) if colon else None
