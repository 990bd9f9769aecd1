"""The rules for new passwords of accounts."""

from typing import Final

from kalends.core.messages import Message
from kalends.operations.accounts import MIN_PASSWORD_LENGTH

MAX_LENGTH: Final = 1000


def find_problem(password: str) -> Message | None:
    """Return why a new password is rejected, or None."""
    if len(password) < MIN_PASSWORD_LENGTH:
        return Message("The password must have at least {number} characters.", number=MIN_PASSWORD_LENGTH)
    if len(password) > MAX_LENGTH:
        return Message("The password must have at most {number} characters.", number=MAX_LENGTH)
    return None
