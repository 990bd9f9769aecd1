"""HTTP of proposals: the routes of the API, and the tools of assistants."""
