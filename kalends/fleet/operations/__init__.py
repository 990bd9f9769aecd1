"""Use cases: moving, exporting and restoring a site."""
