"""The profiles of chaos: how probable each fault is."""

from __future__ import annotations

from collections.abc import Mapping

from fakeamqp.errors import near_match
from fakeamqp.faults.chaos.catalogue import FAULTS
from fakeamqp.faults.errors import FaultError

__all__ = ["PROFILES", "probabilities_of"]

PROFILES: dict[str, dict[str, float]] = {
    "gentle": {
        "nack": 0.03,
        "rejected-transfer": 0.03,
        "late-publish": 0.03,
        "late-confirm": 0.05,
        "late-completion": 0.02,
        "late-delivery": 0.05,
        "late-ack": 0.03,
        "duplicate-delivery": 0.02,
        "slow": 0.005,
        "slices": 0.005,
    },
    "network": {
        "disconnect": 0.01,
        "broken-handshake": 0.02,
        "cut-delivery": 0.01,
        "late-delivery": 0.05,
        "late-confirm": 0.05,
        "lost-publish": 0.005,
        "lost-confirm": 0.005,
        "stall": 0.005,
        "slow": 0.01,
        "slices": 0.01,
    },
    "broker": {
        "nack": 0.03,
        "rejected-transfer": 0.03,
        "return": 0.01,
        "close-channel": 0.01,
        "close-connection": 0.005,
        "failed-command": 0.02,
        "forced-close": 0.005,
        "refused-login": 0.01,
        "cancel-consumers": 0.005,
        "alarm": 0.005,
        "flow": 0.002,
        "restart": 0.002,
        "crash": 0.005,
        "late-confirm": 0.03,
    },
    "hostile": {
        "malformed": 0.01,
        "malformed-transfer": 0.01,
        "lost-confirm": 0.01,
        "lost-publish": 0.01,
        "false-nack": 0.02,
        "duplicate-publish": 0.02,
        "duplicate-delivery": 0.03,
        "cut-delivery": 0.01,
    },
}
"""By name: the probability of each fault at every method that it can happen to."""
PROFILES["mixed"] = {
    name: min(profile[name] for profile in PROFILES.values() if name in profile)
    for name in FAULTS
    if not name.startswith("malformed")
}


def probabilities_of(profile: str | Mapping[str, float]) -> dict[str, float]:
    """The probabilities by fault of a profile, given by its name or as they are.

    Raises:
        FaultError: there is no such profile or fault, or a value is not a probability.
    """
    if isinstance(profile, str):
        if profile not in PROFILES:
            raise FaultError(f"there is no profile {profile!r}{near_match(profile, PROFILES)}")
        return dict(PROFILES[profile])
    if not isinstance(profile, Mapping):
        raise FaultError(f"a profile is a name or a dict of probabilities, not {profile!r}")
    for name, probability in profile.items():
        if name not in FAULTS:
            raise FaultError(f"chaos has no fault {name!r}{near_match(name, FAULTS)}")
        if not isinstance(probability, int | float) or not 0 <= probability <= 1:
            raise FaultError(f"the probability of {name!r} is between 0 and 1, not {probability!r}")
    return dict(profile)
