"""Slots, dates and splits of series, without database access."""
