"""Rows of the source: columns, and from deliveries to Arrow."""
