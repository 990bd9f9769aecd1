"""The form for following, and the pages behind links in emails."""
