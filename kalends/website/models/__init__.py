"""Page models: pure functions from records to the values that templates show."""
