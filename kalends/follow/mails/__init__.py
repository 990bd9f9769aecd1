"""The emails to followers as bytes."""
