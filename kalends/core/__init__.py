"""Domain rules: pure functions without SQL or HTTP. Only core/times.py reads the current time."""
