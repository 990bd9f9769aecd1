"""Use cases: reading an old site, planning, applying, verifying and switching."""
