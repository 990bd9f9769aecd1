"""The console: pages in which publishers sign in, write and manage their calendar."""
