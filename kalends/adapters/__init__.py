"""Clients for other servers and programs, except the database."""
