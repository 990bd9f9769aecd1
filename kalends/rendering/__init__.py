"""Texts and models shared by pages and e-mails, independent of the web server."""
