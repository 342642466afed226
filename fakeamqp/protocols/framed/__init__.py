"""What the server-side connections of 0-9-1 and 0-9 share: framing, the handshake, channels, class basic.

It imports neither protocol. A protocol hands in its methods as a `Vocabulary`.
"""
