"""What the service does: five verbs for every kind, and who may use them."""
