"""User permissions, and the cached responses that a write invalidates."""
