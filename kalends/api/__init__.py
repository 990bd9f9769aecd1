"""The REST API: its routes, the handling of requests, batches, uploads."""
