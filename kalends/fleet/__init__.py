"""Support for several databases: cells, site moves, site archives and replicas."""
