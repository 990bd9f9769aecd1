"""Use cases of push: the follower of the change log, deliveries, and the management of endpoints."""
