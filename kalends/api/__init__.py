"""The REST API: routes, request handling, batches and uploads."""
