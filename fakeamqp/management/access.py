"""Who may do what: basic authentication, and the tags of users."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from fakeamqp.management.errors import not_authorised
from fakeamqp.model.errors import AuthenticationFailed

if TYPE_CHECKING:
    from fakeamqp.management.context import Management
    from fakeamqp.model.access import User
    from fakeamqp.model.state import BrokerState

__all__ = ["Role", "Visitor", "authenticate"]


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
    def is_policymaker(self) -> bool:
        """Whether the user may change policies and parameters."""
        return bool(self.roles & {Role.POLICYMAKER, Role.ADMINISTRATOR})

    @property
    def is_monitor(self) -> bool:
        """Whether the user may see what all users do."""
        return bool(self.roles & {Role.MONITORING, Role.ADMINISTRATOR})

    def has(self, role: Role) -> bool:
        """Whether the user has a role, or one that includes it."""
        if role is Role.MANAGEMENT:
            return bool(self.roles)
        return role in self.roles or self.is_administrator

    def may_see(self, virtual_host: str) -> bool:
        """Whether the user may see what is in a virtual host."""
        return self.is_monitor or virtual_host in self.virtual_hosts


def authenticate(management: Management, authorization: str | None) -> Visitor:
    """The user that a header `Authorization` names.

    Raises:
        Refused: 401: there is no header, it is of another scheme, the credentials are wrong, or the user has
            no tag that permits to use the API.
    """
    credentials = _credentials(authorization)
    if credentials is None:
        raise not_authorised("Login failed")
    name, password = credentials

    def log_in(state: BrokerState) -> Visitor:
        user: User = state.access.authenticate(name, password)
        return Visitor(user.name, user.tags, frozenset(user.permissions))

    try:
        visitor = management.read(log_in)
    except AuthenticationFailed:
        raise not_authorised("Login failed") from None
    if not visitor.roles:
        raise not_authorised("Not management user")
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
