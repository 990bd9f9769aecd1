"""Operations on accounts, sessions and passkeys."""
