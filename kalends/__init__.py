"""Kalends: a calendar-events server on PostgreSQL."""

__version__ = "0.1.0"
