"""The description of the API: the OpenAPI document, the index of routes and the reference page."""
