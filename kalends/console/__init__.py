"""The console, where publishers sign in, write events and manage their calendar."""
