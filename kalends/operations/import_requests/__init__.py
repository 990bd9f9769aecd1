"""Requests of people and clients for imports: sources, runs and the rows of plans. The worker does the work."""
