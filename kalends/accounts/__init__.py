"""Users, sessions, passkeys, invitations and application passwords."""
