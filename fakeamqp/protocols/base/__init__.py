"""The shared part of the server-side connections of all protocols.

Reading order: `server_connection.ServerConnection` is the base class. `connection_states` has its transition
table, `handshakes` the limits before the connection is open, `login` the authentication, `outbox` the bytes
to send, `heartbeats` the heartbeats, `port` the access of fault rules, and `codec` what codecs share.
"""
