"""The broker as AMQP describes it, independent of protocol versions, sockets, threads and the wall clock.

Only one thread at a time accesses the model (the holder of the engine's lock). Protocols translate their
methods into calls on :class:`~fakeamqp.model.state.BrokerState` and
:class:`~fakeamqp.model.virtual_host.VirtualHost`. The model raises
:class:`~fakeamqp.model.errors.ModelError`, which has a condition; the protocol adds the reply code.
"""
