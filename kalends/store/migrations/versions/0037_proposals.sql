-- Whether the public form is open.
ALTER TABLE sites ADD COLUMN IF NOT EXISTS submissions boolean NOT NULL DEFAULT false;
GRANT UPDATE (submissions) ON sites TO kalends_app;

-- Whether an editor gets the daily summary of the queue, and the last day with one in the site's time zone.
ALTER TABLE users ADD COLUMN IF NOT EXISTS queue_email boolean NOT NULL DEFAULT true;
ALTER TABLE users ADD COLUMN IF NOT EXISTS queue_emailed_on date;

-- Read-only passwords that may also create, change and withdraw proposals.
ALTER TABLE application_passwords ADD COLUMN IF NOT EXISTS may_propose boolean NOT NULL DEFAULT false
    CHECK (read_only OR NOT may_propose);

-- People without an account who use the public form.
CREATE TABLE IF NOT EXISTS submitters (
    site_id      bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id           uuid NOT NULL,
    email        text NOT NULL CHECK (email = lower(email) AND email <> ''),
    language     text NOT NULL DEFAULT '',
    blocked_at   timestamptz,
    blocked_by   bigint,
    last_seen_at timestamptz NOT NULL,
    PRIMARY KEY (site_id, id),
    UNIQUE (site_id, email),
    FOREIGN KEY (site_id, blocked_by) REFERENCES users (site_id, id) ON DELETE SET NULL (blocked_by)
);

-- Changes of events that have not happened. Their tables have neither revisions nor numbers from the site's counters.
CREATE TABLE IF NOT EXISTS proposals (
    site_id        bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id             uuid NOT NULL,
    -- Raised by every change of the row; decisions name it.
    version        integer NOT NULL DEFAULT 1 CHECK (version > 0),
    kind           text NOT NULL DEFAULT 'events' CHECK (kind = 'events'),
    -- Null: a new event that has not been accepted.
    record_id      bigint,
    -- The revision of the event that the values change; null: a new event.
    base_revision  bigint,
    -- The parameters of the event. Empty: a decision on an event with the status pending.
    values         jsonb NOT NULL DEFAULT '{}',
    origin         text NOT NULL CHECK (origin IN ('public', 'contributor', 'api', 'agent')),
    user_id        bigint,
    submitter_id   uuid,
    submitter_name text NOT NULL DEFAULT '',
    note           text NOT NULL DEFAULT '',
    -- Parameters that the sender guessed, and where the values come from: an address or an excerpt.
    guessed        text[] NOT NULL DEFAULT '{}',
    source         text NOT NULL DEFAULT '',
    -- The name of the application password.
    program        text NOT NULL DEFAULT '',
    state          text NOT NULL CHECK (state IN
        ('unconfirmed', 'waiting', 'accepted', 'returned', 'rejected', 'withdrawn', 'expired')),
    -- The start of the event, with the proposed values.
    starts_at      timestamptz NOT NULL,
    created_at     timestamptz NOT NULL,
    -- When a job next looks at the row, to end or erase it.
    expires_at     timestamptz NOT NULL,
    decided_by     bigint,
    decided_at     timestamptz,
    -- Why it was rejected, 1 to 6.
    reason         smallint CHECK (reason BETWEEN 1 AND 6),
    comment        text NOT NULL DEFAULT '',
    -- The revision of the site before and after the decision.
    first_revision bigint,
    last_revision  bigint,
    -- SHA-256 of the tokens in links sent by email.
    token_hashes   bytea[] NOT NULL DEFAULT '{}' CHECK (cardinality(token_hashes) <= 10),
    PRIMARY KEY (site_id, id),
    CHECK (num_nonnulls(user_id, submitter_id) <= 1),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE SET NULL (user_id),
    FOREIGN KEY (site_id, decided_by) REFERENCES users (site_id, id) ON DELETE SET NULL (decided_by),
    FOREIGN KEY (site_id, submitter_id) REFERENCES submitters (site_id, id) ON DELETE SET NULL (submitter_id)
);
CREATE INDEX IF NOT EXISTS proposals_queue ON proposals (site_id, starts_at, id) WHERE state = 'waiting';
CREATE INDEX IF NOT EXISTS proposals_due ON proposals (expires_at);
CREATE INDEX IF NOT EXISTS proposals_record ON proposals (site_id, record_id);
CREATE UNIQUE INDEX IF NOT EXISTS proposals_open_by_user ON proposals (site_id, record_id, user_id)
    WHERE state IN ('waiting', 'returned') AND values <> '{}';
CREATE UNIQUE INDEX IF NOT EXISTS proposals_open_by_submitter ON proposals (site_id, record_id, submitter_id)
    WHERE state IN ('waiting', 'returned') AND values <> '{}';
COMMENT ON INDEX proposals_queue IS 'the queue of editors';
COMMENT ON INDEX proposals_due IS 'worker: proposals to end or erase, of all sites';
COMMENT ON INDEX proposals_record IS 'the proposals for an event; its history';
COMMENT ON INDEX proposals_open_by_user IS 'one open change per event and account';
COMMENT ON INDEX proposals_open_by_submitter IS 'one open change per event and submitter';

-- Not in the media library, which is public.
CREATE TABLE IF NOT EXISTS proposal_pictures (
    site_id     bigint NOT NULL,
    proposal_id uuid NOT NULL,
    content     bytea NOT NULL CHECK (octet_length(content) <= 600000),
    alt_text    text NOT NULL DEFAULT '',
    PRIMARY KEY (site_id, proposal_id),
    FOREIGN KEY (site_id, proposal_id) REFERENCES proposals (site_id, id) ON DELETE CASCADE
);

-- Proposals that a job has to look at.
CREATE OR REPLACE FUNCTION due_proposals(cutoff timestamptz, most integer) RETURNS TABLE (site_id bigint, id uuid)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT p.site_id, p.id FROM proposals p
    WHERE p.expires_at <= cutoff AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = p.site_id)
    ORDER BY p.expires_at LIMIT most
$$;

-- Sites with proposals or pending events, for the daily summary.
CREATE OR REPLACE FUNCTION sites_with_queue() RETURNS TABLE (site_id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.id FROM sites s
    WHERE (EXISTS (SELECT FROM proposals p WHERE p.site_id = s.id AND p.state = 'waiting')
        OR EXISTS (SELECT FROM events e WHERE e.site_id = s.id AND e.status <> 'publish' AND e.status = 'pending'
            AND NOT e.hide_from_listings))
        AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.id)
$$;

DO $$
DECLARE
    name text;
    called regprocedure;
BEGIN
    FOREACH name IN ARRAY ARRAY['submitters', 'proposals', 'proposal_pictures'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('DROP POLICY IF EXISTS site_fence ON %I', name);
        EXECUTE format('CREATE POLICY site_fence ON %I TO kalends_app
            USING (site_id = current_setting(''kalends.site_id'')::bigint)
            WITH CHECK (site_id = current_setting(''kalends.site_id'')::bigint)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO kalends_app', name);
    END LOOP;
    FOREACH called IN ARRAY ARRAY['due_proposals(timestamptz, integer)', 'sites_with_queue()']::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', called, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', called);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO kalends_app', called);
    END LOOP;
END $$;
