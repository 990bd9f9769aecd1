"""HTTP of push: routes of webhooks, and live lists as streams of events."""
