"""Benchmarks: ratios measured side by side in one run, of CPU time rather than elapsed time."""
