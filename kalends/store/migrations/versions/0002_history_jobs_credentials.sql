-- History, tombstones, scheduled publication, trash, the job queue, and protection of credentials.

ALTER TABLE changes
    -- The changed columns, before and after; null where none were logged.
    ADD COLUMN before jsonb,
    ADD COLUMN after jsonb,
    -- Whether the record was public before this change, so that its deletion is reported to everybody.
    ADD COLUMN was_public boolean NOT NULL DEFAULT false;

-- Changes up to this revision have been deleted; a client that is further behind needs a full sync.
ALTER TABLE sites ADD COLUMN trimmed_revision bigint NOT NULL DEFAULT 0;

-- Changes since a revision, per kind.
CREATE UNIQUE INDEX events_revision ON events (site_id, revision);
CREATE UNIQUE INDEX venues_revision ON venues (site_id, revision);
CREATE UNIQUE INDEX organizers_revision ON organizers (site_id, revision);
CREATE UNIQUE INDEX categories_revision ON categories (site_id, revision);
CREATE UNIQUE INDEX tags_revision ON tags (site_id, revision);
CREATE INDEX changes_tombstones ON changes (site_id, revision) WHERE action = 'delete';

-- Due records of all sites, for the worker.
CREATE INDEX events_due ON events (date_utc) WHERE status = 'future';
CREATE INDEX venues_due ON venues (date_utc) WHERE status = 'future';
CREATE INDEX organizers_due ON organizers (date_utc) WHERE status = 'future';
CREATE INDEX events_trashed ON events (trashed_at) WHERE status = 'trash';
CREATE INDEX venues_trashed ON venues (trashed_at) WHERE status = 'trash';
CREATE INDEX organizers_trashed ON organizers (trashed_at) WHERE status = 'trash';

-- Credentials -------------------------------------------------------------------------------

ALTER TABLE application_passwords ADD COLUMN read_only boolean NOT NULL DEFAULT false;

CREATE TABLE application_password_uses (
    site_id     bigint NOT NULL,
    password_id uuid NOT NULL,
    at          timestamptz NOT NULL,
    address     text NOT NULL,
    agent       text NOT NULL,
    PRIMARY KEY (site_id, password_id, at, address),
    FOREIGN KEY (site_id, password_id) REFERENCES application_passwords (site_id, id) ON DELETE CASCADE
);

-- Failed logins by account and by IP address: the number that is not yet forgiven, and its time.
CREATE TABLE login_failures (
    site_id bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    subject text NOT NULL,
    count   double precision NOT NULL,
    at      timestamptz NOT NULL,
    PRIMARY KEY (site_id, subject)
);
CREATE INDEX login_failures_age ON login_failures (site_id, at);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['application_password_uses', 'login_failures'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY site_fence ON %I TO kalends_app
            USING (site_id = current_setting(''kalends.site_id'')::bigint)
            WITH CHECK (site_id = current_setting(''kalends.site_id'')::bigint)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO kalends_app', name);
    END LOOP;
END $$;

-- Background work ---------------------------------------------------------------------------

-- A job has a site, and a transaction can enqueue jobs for its site only.
CREATE FUNCTION enqueue_job(task text, arguments jsonb, at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
        'default', task, 0, NULL, NULL,
        arguments || jsonb_build_object('site_id', current_setting('kalends.site_id')::bigint),
        at)::procrastinate_job_to_defer_v1]);
END $$;

-- Enters a site by ID, for the worker.
CREATE FUNCTION enter_site_number(asked bigint) RETURNS SETOF sites
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('kalends.site_id', asked::text, true);
    RETURN QUERY SELECT * FROM sites WHERE id = asked;
END $$;

-- Scheduled records of all sites whose publication date has passed.
CREATE FUNCTION due_records(most integer) RETURNS TABLE (site_id bigint, kind text, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    (SELECT e.site_id, 'events', e.id FROM events e WHERE e.status = 'future' AND e.date_utc <= now() LIMIT most)
    UNION ALL
    (SELECT v.site_id, 'venues', v.id FROM venues v WHERE v.status = 'future' AND v.date_utc <= now() LIMIT most)
    UNION ALL
    (SELECT o.site_id, 'organizers', o.id FROM organizers o
     WHERE o.status = 'future' AND o.date_utc <= now() LIMIT most)
$$;

-- Records of all sites that were trashed before a time.
CREATE FUNCTION old_trash(cutoff timestamptz, most integer) RETURNS TABLE (site_id bigint, kind text, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    (SELECT e.site_id, 'events', e.id FROM events e WHERE e.status = 'trash' AND e.trashed_at < cutoff LIMIT most)
    UNION ALL
    (SELECT v.site_id, 'venues', v.id FROM venues v WHERE v.status = 'trash' AND v.trashed_at < cutoff LIMIT most)
    UNION ALL
    (SELECT o.site_id, 'organizers', o.id FROM organizers o
     WHERE o.status = 'trash' AND o.trashed_at < cutoff LIMIT most)
$$;

-- Sites whose change log begins before a time.
CREATE FUNCTION sites_with_old_changes(cutoff timestamptz) RETURNS TABLE (site_id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.id FROM sites s WHERE EXISTS (
        SELECT FROM changes c WHERE c.site_id = s.id AND c.revision = s.trimmed_revision + 1 AND c.at < cutoff)
$$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['enqueue_job(text, jsonb, timestamptz)', 'enter_site_number(bigint)',
        'due_records(integer)', 'old_trash(timestamptz, integer)', 'sites_with_old_changes(timestamptz)'] LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO kalends_app', name);
    END LOOP;
END $$;
