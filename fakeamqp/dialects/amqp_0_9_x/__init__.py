"""What the dialects 0-9 and 0-9-1 have in common: frames, the handshake, the life of a channel.

Here is the machinery. What a method does is said in the dialects, each of which has one module per class.
Reading order: `endpoint` cuts frames and turns errors into closes, `connection` is the handshake,
`channel_end` what every channel has, `delivering` how contents of class basic go out.
"""
