"""The shared part of the server-side connections of all protocols.

Reading order: `server_connection.ServerConnection` is the base class. `connection_states` has its transition
table, `login.Login` and `sasl` the authentication, `outbox.Outbox` the bytes to send, `heartbeats.Heartbeats`
the heartbeats and `handshake_timeout.HandshakeTimeout` the timeout before the connection is open.
`choices` looks up the choices of a personality for one protocol, `port` the access of fault rules.
"""
