"""HTML from outside: limits, sanitizing, conversion to text."""
