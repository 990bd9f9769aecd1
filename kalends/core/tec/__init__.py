"""The content of a WordPress site with The Events Calendar, as records that can be imported."""
