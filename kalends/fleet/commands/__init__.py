"""Commands for cells, site moves and site archives."""
