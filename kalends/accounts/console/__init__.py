"""Sign-in, the account page, and the people pages."""
