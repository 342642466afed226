"""Messages and their properties, and contents that arrive in parts."""
