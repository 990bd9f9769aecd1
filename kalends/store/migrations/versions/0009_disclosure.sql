-- An event is announced as cancelled only if the write that withdrew it changed nothing else, and nothing was
-- written since. Whether this holds for events that were withdrawn before is not known, so they are not announced.
UPDATE events SET withdrawn_at = NULL WHERE withdrawn_at IS NOT NULL;

-- Whether a password opens anything at all.
CREATE INDEX events_password ON events (site_id, password_hash) WHERE password_hash IS NOT NULL;

-- How many records an account has created on its last day of writing, in UTC.
CREATE TABLE daily_records (
    site_id bigint NOT NULL,
    user_id bigint NOT NULL,
    day     date NOT NULL,
    count   bigint NOT NULL,
    PRIMARY KEY (site_id, user_id),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);

ALTER TABLE daily_records ENABLE ROW LEVEL SECURITY;
CREATE POLICY site_fence ON daily_records TO kalends_app
    USING (site_id = current_setting('kalends.site_id')::bigint)
    WITH CHECK (site_id = current_setting('kalends.site_id')::bigint);
GRANT SELECT, INSERT, UPDATE, DELETE ON daily_records TO kalends_app;
