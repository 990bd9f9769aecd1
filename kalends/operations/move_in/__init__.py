"""Moving a WordPress site with The Events Calendar in."""
