"""Import commands."""
