"""The rules of the domain: pure functions without SQL and HTTP. Only core/clock.py reads the time."""
