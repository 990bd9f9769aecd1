"""Measurements: ratios taken side by side in one run, CPU rather than time."""
