"""The table of events: filters, rows, saved filters and bulk changes."""
