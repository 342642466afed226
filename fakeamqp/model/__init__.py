"""The broker as AMQP describes it, free of any protocol version: no bytes, sockets, threads or wall clock.

Everything here is touched by one writer at a time (the engine holds the lock). Protocols translate
their methods into calls on :class:`~fakeamqp.model.state.BrokerState` and
:class:`~fakeamqp.model.virtual_host.VirtualHost`; failures come back as
:class:`~fakeamqp.model.errors.ModelError`, which names a condition and leaves the reply code to the protocol.
"""
