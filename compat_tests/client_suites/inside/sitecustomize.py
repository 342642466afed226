"""Loaded by every Python of a suite, for tests that have the address of their broker in their source.

FAKEAMQP_SUITE_PORTS is a JSON object: connections to a port of this machine that is a key of it go to the
port that is its value.
"""

import json
import os
import socket

PORTS = {int(port): there for port, there in json.loads(os.environ.get("FAKEAMQP_SUITE_PORTS", "{}")).items()}
HERE = ("127.0.0.1", "localhost", "::1")


def _there(address):
    if isinstance(address, tuple) and len(address) >= 2 and address[0] in HERE and address[1] in PORTS:
        return (address[0], PORTS[address[1]], *address[2:])
    return address


if PORTS:
    _connect, _connect_ex = socket.socket.connect, socket.socket.connect_ex
    socket.socket.connect = lambda self, address: _connect(self, _there(address))
    socket.socket.connect_ex = lambda self, address: _connect_ex(self, _there(address))
