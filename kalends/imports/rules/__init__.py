"""Rules for reading iCalendar files and tables into records."""
