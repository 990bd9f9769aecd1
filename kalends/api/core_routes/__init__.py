"""The core routes of WordPress (`wp/v2`) that clients of a calendar use: images, accounts and read-only lists."""
