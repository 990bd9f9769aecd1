"""The roles of users, from the lowest to the highest."""

from typing import Final

ROLES: Final = ("anonymous", "subscriber", "contributor", "author", "editor", "administrator")
