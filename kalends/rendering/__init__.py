"""Texts and models shared by pages and emails, independent of the web server."""
