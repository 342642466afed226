"""Policies and operator policies: options that an operator gives to queues and exchanges by their names.

`keys` knows what a policy may set, `policy` what one is and what it matches, `merging` what comes of a
policy, an operator policy and a queue's own arguments together, and `book` keeps those of a virtual host.
"""

from fakeamqp.model.policies.book import Policies
from fakeamqp.model.policies.merging import effective_definition, effective_options
from fakeamqp.model.policies.policy import Policy, PolicyError, read_policy

__all__ = ["Policies", "Policy", "PolicyError", "effective_definition", "effective_options", "read_policy"]
