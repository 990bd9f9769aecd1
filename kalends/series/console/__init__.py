"""Series pages in the console."""
