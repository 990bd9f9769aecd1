-- An event is announced as cancelled only if the write that withdrew it changed nothing else, and it has not been
-- changed since. This is unknown for events that were withdrawn before, so they are not announced.
UPDATE events SET withdrawn_at = NULL WHERE withdrawn_at IS NOT NULL;

-- Finds out whether a password unlocks any event.
CREATE INDEX events_password ON events (site_id, password_hash) WHERE password_hash IS NOT NULL;

-- The number of records that a user has created on the last day with writes, in UTC.
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
