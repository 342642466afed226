"""One package per protocol: its codec, its sans-I/O connection, and what faults and traces ask of it.

Nothing here knows sockets, threads or the wall clock. The runtime feeds what it reads to
`Connection.receive` and writes what `Connection.pending` hands out; tests do the same by hand.

`registry` lists the protocols, `negotiation` picks one by the protocol header, `interface` is what the runtime
sees of a connection. `common` is what the connections of all protocols share, `codec` what all codecs share,
`framed` what 0-9-1 and 0-9 share beyond that.
"""
