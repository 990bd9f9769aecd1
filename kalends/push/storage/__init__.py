"""SQL of push: consumers of the change log, webhooks, pending records and deliveries."""
