"""The media library: files, buckets, and the image decoding process."""
