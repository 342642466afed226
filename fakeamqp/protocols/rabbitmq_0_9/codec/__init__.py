"""The methods of both protocols. See `methods`."""
