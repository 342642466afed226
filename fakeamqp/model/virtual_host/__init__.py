"""A virtual host, and the registers that create and delete its exchanges, queues and bindings."""

from fakeamqp.model.virtual_host.virtual_host import VirtualHost

__all__ = ["VirtualHost"]
