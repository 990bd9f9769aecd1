"""Routes for proposals, and the schemas of their responses."""
