"""Imports in the console: sources, plans, progress, undo and the columns of tables."""
