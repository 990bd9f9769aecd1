"""Tables and forms of venues, organizers, categories, tags and images."""
