"""Use cases: reading, writing, listing, merging and restoring records."""
