"""Rules of following by email, without I/O: slots, changes between two states, tokens, limits."""
