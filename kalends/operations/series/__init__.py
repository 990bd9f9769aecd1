"""Series of recurring events: creating, editing, extending and undoing."""
