"""The console page for webhooks."""
