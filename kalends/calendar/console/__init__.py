"""The console's event form and event table."""
