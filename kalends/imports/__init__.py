"""Imports from calendars and tables, and exports."""
