"""Public pages: pure functions from records to page models, templates, and the files that pages need.

Knows neither HTTP nor SQL, and reads no clock.
"""
