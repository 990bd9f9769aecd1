"""The operations of the service: list, read, create, update and delete for every kind, and their permissions."""
