"""Records from an old site, and their translation to Kalends."""
