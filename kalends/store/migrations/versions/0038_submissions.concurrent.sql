CREATE INDEX CONCURRENTLY IF NOT EXISTS application_passwords_hash ON application_passwords (site_id, hash);
COMMENT ON INDEX application_passwords_hash IS 'callers who send a password without a login';
CREATE INDEX CONCURRENTLY IF NOT EXISTS proposals_submitter ON proposals (site_id, submitter_id) WHERE submitter_id IS NOT NULL;
COMMENT ON INDEX proposals_submitter IS 'the proposals of a person without an account';
