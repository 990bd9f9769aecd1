"""The queue of proposals in the console, and the forms of proposals."""
