"""Use cases: creating, editing, splitting and restoring series."""
