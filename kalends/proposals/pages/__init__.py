"""The public form for events, and the pages that links in emails lead to."""
