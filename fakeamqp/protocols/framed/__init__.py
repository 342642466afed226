"""What the protocols 0-9 and 0-9-1 have in common: frames, the handshake, the life of a channel.

Here is the machinery. What a method does is said in the protocols, each of which has one module per class.
Reading order: `server_connection` cuts frames and turns errors into closes, `connection` is the handshake,
`server_channel` what every channel has, `delivering` how contents of class basic go out.
"""
