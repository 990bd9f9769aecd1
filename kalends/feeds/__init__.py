"""Feeds: iCalendar, RSS, Atom, JSON Feed and the sitemap, as pure functions of records as everybody sees them."""
