"""What the codecs of all protocols share: errors and timestamps."""
