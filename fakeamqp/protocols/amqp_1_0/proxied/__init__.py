"""A connection of 1.0 through a proxy: what passes between a client and a broker of another process."""
