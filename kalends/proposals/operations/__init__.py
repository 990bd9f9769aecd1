"""Use cases of proposals: sending, deciding, reading."""
