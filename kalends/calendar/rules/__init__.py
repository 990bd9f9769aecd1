"""Records as data, and rules about records that need no database."""
