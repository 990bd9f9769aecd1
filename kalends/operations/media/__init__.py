"""Images: the media library, their records, maintenance and bulk adding."""
