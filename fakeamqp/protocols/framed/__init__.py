"""The shared part of the server-side connections of 0-9-1 and 0-9: frames, handshake, channels, class basic.

Reading order: `server_connection.FramedConnection` splits bytes into frames and turns errors into closes;
`connection` handles class connection, from the handshake to the close. `server_channel.FramedChannel` is one
channel, with its consumers and unacknowledged deliveries. `publishing` checks a published message,
`delivering` encodes deliveries, `settling` handles acknowledgements, `windows` the shared prefetch limits.

This package imports neither protocol. Each protocol passes its methods as a `vocabulary.Vocabulary`.
"""
