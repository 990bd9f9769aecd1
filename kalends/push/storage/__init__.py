"""Tables of followers and of webhook endpoints."""
