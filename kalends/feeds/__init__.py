"""Feed formats: iCalendar, RSS, Atom, JSON Feed and sitemaps, as pure functions of records."""
