"""Routes of webhooks, and live lists."""
