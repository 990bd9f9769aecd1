-- Sessions, passkeys, one-time tokens, drafts and saved filters of the console.

-- The language of the console; empty: the one that the browser prefers.
ALTER TABLE users ADD COLUMN language text NOT NULL DEFAULT '';
-- The last time the user signed in to the console; NULL: never.
ALTER TABLE users ADD COLUMN last_signed_in_at timestamptz;

-- A browser in which a user has signed in. Only the hash of its token is stored, so a copy of the database contains
-- nothing that could be used to sign in.
CREATE TABLE sessions (
    site_id             bigint NOT NULL,
    token_hash          bytea NOT NULL,
    user_id             bigint NOT NULL,
    created_at          timestamptz NOT NULL,
    -- Written at most every few minutes.
    seen_at             timestamptz NOT NULL,
    -- The last time the user proved their identity; changes of credentials require a recent one.
    reauthenticated_at  timestamptz NOT NULL,
    client_ip           text NOT NULL,
    user_agent          text NOT NULL,
    PRIMARY KEY (site_id, token_hash),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);
CREATE INDEX sessions_of_user ON sessions (site_id, user_id);

CREATE TABLE passkeys (
    site_id        bigint NOT NULL,
    credential_id  bytea NOT NULL,
    user_id        bigint NOT NULL,
    public_key     bytea NOT NULL,
    sign_count     bigint NOT NULL,
    name           text NOT NULL,
    created_at     timestamptz NOT NULL,
    last_used_at   timestamptz,
    PRIMARY KEY (site_id, credential_id),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);
CREATE INDEX passkeys_of_user ON passkeys (site_id, user_id);

-- Links that sign in, invite or reset a password, and challenges of passkeys that were used. Each works once.
CREATE TABLE one_time_tokens (
    site_id     bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    token_hash  bytea NOT NULL,
    purpose     text NOT NULL CHECK (purpose IN ('sign_in', 'invite', 'reset', 'used_challenge')),
    user_id     bigint,
    expires_at  timestamptz NOT NULL,
    PRIMARY KEY (site_id, token_hash),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);
CREATE INDEX one_time_tokens_of_user ON one_time_tokens (site_id, user_id);

-- Forms that a user has not saved yet. They raise no revision.
CREATE TABLE drafts (
    site_id        bigint NOT NULL,
    user_id        bigint NOT NULL,
    kind           text NOT NULL,
    -- The ID of the record, or a key that the browser has generated for a new record.
    draft_key      text NOT NULL CHECK (length(draft_key) BETWEEN 1 AND 64),
    base_revision  bigint,
    fields         jsonb NOT NULL,
    saved_at       timestamptz NOT NULL,
    PRIMARY KEY (site_id, user_id, kind, draft_key),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);

-- Filters of the tables of the console, by the name that a user gave them.
CREATE TABLE saved_filters (
    site_id  bigint NOT NULL,
    user_id  bigint NOT NULL,
    name     text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    query    text NOT NULL CHECK (length(query) <= 2000),
    PRIMARY KEY (site_id, user_id, name),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);

-- For the table of events: the events of an author, and those that are hidden from lists.
CREATE INDEX events_by_author ON events (site_id, author_id, start_utc);
CREATE INDEX events_hidden ON events (site_id, start_utc) WHERE hide_from_listings;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['sessions', 'passkeys', 'one_time_tokens', 'drafts', 'saved_filters'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY site_fence ON %I TO kalends_app
            USING (site_id = current_setting(''kalends.site_id'')::bigint)
            WITH CHECK (site_id = current_setting(''kalends.site_id'')::bigint)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO kalends_app', name);
    END LOOP;
END $$;
