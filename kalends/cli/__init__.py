"""Settings, errors and lists shared by all commands."""
