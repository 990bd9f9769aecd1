"""SQL for records, their links and their history."""
