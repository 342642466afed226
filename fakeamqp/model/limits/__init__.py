"""What bounds a broker: the limits of an operator, bounds of what peers make it keep, and its memory."""
