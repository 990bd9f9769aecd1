"""Public pages and feeds: routes, views, templates and static files."""
