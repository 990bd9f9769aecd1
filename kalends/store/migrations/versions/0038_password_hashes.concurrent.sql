CREATE INDEX CONCURRENTLY IF NOT EXISTS application_passwords_hash ON application_passwords (site_id, hash);
COMMENT ON INDEX application_passwords_hash IS 'callers who send a password without a login';
