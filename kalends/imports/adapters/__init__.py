"""Table files, and the process that reads untrusted input."""
