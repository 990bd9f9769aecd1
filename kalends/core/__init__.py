"""Pure rules of the service: no SQL, no HTTP, no clock."""
