"""Event series and their dates."""
