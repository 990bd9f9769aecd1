"""Use cases: planning, applying and undoing imports, and exports."""
