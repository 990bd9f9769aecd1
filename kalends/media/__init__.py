"""Images: upload, fetching, storage and sizes."""
