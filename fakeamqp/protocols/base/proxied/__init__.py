"""What proxied connections of all protocols share: the two legs, and the end of a connection."""
