"""A connection of 0-9-1 through a proxy: what passes between a client and a broker of another process."""
