"""The list of events: its filters, date bounds, order and queries."""
