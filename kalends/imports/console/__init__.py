"""Console pages for imports."""
