"""A virtual host, and the registers by which its exchanges, queues and bindings come and go."""

from fakeamqp.model.virtual_host.virtual_host import VirtualHost

__all__ = ["VirtualHost"]
