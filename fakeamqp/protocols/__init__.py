"""One package per protocol: its codec, its sans-I/O connection, and its adapters for faults and traces.

No module here uses sockets, threads or the wall clock. The runtime passes received bytes to
`Connection.receive` and writes the bytes from `Connection.pending`; tests can do the same.

Reading order: `registry` lists the protocols, `negotiation.Negotiation` selects one by the protocol header.
`fakeamqp.connection.Connection` is the interface that the runtime uses. All protocols share `base`;
`amqp_0_9` builds on `amqp_0_9_1`.
"""
