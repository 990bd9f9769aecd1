"""Export of one site to a file, and import of such a file as a new site."""
