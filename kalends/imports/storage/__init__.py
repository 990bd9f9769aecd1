"""SQL for import sources, runs and rows."""
