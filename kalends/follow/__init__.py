"""Following lists and events by email: digests, alerts and reminders."""
