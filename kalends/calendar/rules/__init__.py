"""Records as data, and rules for them that need no database."""
