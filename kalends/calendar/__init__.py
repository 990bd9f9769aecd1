"""The core of Kalends: events, venues, organizers and terms, with their lists, history and permissions."""
