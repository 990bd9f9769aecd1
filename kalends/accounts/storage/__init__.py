"""SQL for accounts and sessions."""
