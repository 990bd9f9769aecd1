"""The API description: the OpenAPI document, the route index and the reference page."""
