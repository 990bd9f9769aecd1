"""Pages that follow the change log."""
