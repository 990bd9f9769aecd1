"""The form of an event: its values, choices, warnings, preview and drafts."""
