"""Proposals: changes that have not happened, and one queue in which editors decide."""
