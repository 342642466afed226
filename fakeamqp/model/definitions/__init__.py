"""RabbitMQ's definitions format: a broker's topology, accounts, policies and parameters as data.

What cannot be honoured is refused by name, never skipped: a definition that loads is in force.
"""

from fakeamqp.model.definitions.dumping import dump_definitions
from fakeamqp.model.definitions.loading import load_definitions
from fakeamqp.model.definitions.sections import DefinitionsError

__all__ = ["DefinitionsError", "dump_definitions", "load_definitions"]
