"""RabbitMQ's definitions format: a broker's topology, accounts, policies and parameters as data.

Entries that cannot be applied are refused with their names, never skipped: everything that loads is in force.
"""

from fakeamqp.model.definitions.dumping import dump_definitions
from fakeamqp.model.definitions.loading import DefinitionsError, load_definitions, loading

__all__ = ["DefinitionsError", "dump_definitions", "load_definitions", "loading"]
