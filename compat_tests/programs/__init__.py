"""Programs: what a client may do with queues, as data, and what must come of it.

`program` has the operations, `strategies` makes programs of them, `reference` says what each operation must
bring about, `player` does it on a broker without sockets, and `check` compares the two.
"""
