"""The only code that runs SQL."""
