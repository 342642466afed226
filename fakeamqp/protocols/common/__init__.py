"""What the server-side connections of all protocols share."""
