"""SQL for the directory, cells, moves and archives."""
