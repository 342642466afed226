"""Policies and operator policies: options that an operator gives to queues and exchanges by their names.

`keys` checks definitions, `policy` describes one policy and its matches, `merging` combines a policy, an
operator policy and arguments, and `book` keeps the policies of a virtual host.
"""

from fakeamqp.model.policies.book import Policies
from fakeamqp.model.policies.merging import effective_definition, effective_options
from fakeamqp.model.policies.policy import Policy, PolicyError, read_policy

__all__ = ["Policies", "Policy", "PolicyError", "effective_definition", "effective_options", "read_policy"]
