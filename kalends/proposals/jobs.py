"""The job that ends proposals whose event is over, and erases what is no longer needed."""
