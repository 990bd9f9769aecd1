-- Whether people can follow lists by email, where answers go, and the last lines of the emails.
ALTER TABLE sites ADD COLUMN IF NOT EXISTS follow_by_email boolean NOT NULL DEFAULT false;
ALTER TABLE sites ADD COLUMN IF NOT EXISTS reply_to text NOT NULL DEFAULT '';
ALTER TABLE sites ADD COLUMN IF NOT EXISTS mail_footer text NOT NULL DEFAULT '' CHECK (length(mail_footer) <= 1000);
GRANT UPDATE (follow_by_email, reply_to, mail_footer) ON sites TO kalends_app;

-- People who get emails without an account.
CREATE TABLE IF NOT EXISTS followers (
    site_id       bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id            uuid NOT NULL,
    email         text NOT NULL CHECK (email <> ''),
    -- Makes the tokens in links. An imported site needs it for links in earlier emails.
    key           bytea NOT NULL CHECK (octet_length(key) = 16),
    language      text NOT NULL DEFAULT '',
    -- Consecutive refusals of the address by the mail server, and the latest code.
    refusals      integer NOT NULL DEFAULT 0,
    refusal_code  text NOT NULL DEFAULT '',
    -- When emails to the address ended because of refusals.
    suppressed_at timestamptz,
    PRIMARY KEY (site_id, id)
);
CREATE UNIQUE INDEX IF NOT EXISTS followers_email ON followers (site_id, lower(email));
CREATE INDEX IF NOT EXISTS followers_suppressed ON followers (suppressed_at) WHERE suppressed_at IS NOT NULL;
COMMENT ON INDEX followers_email IS 'one person per address';
COMMENT ON INDEX followers_suppressed IS 'worker: addresses to forget, of all sites';

-- A list or an event that a person follows. Nothing refers to events, because a deletion is announced as well.
CREATE TABLE IF NOT EXISTS follows (
    site_id      bigint NOT NULL,
    id           uuid NOT NULL,
    follower_id  uuid NOT NULL,
    -- The filters of a list as canonical text.
    query        text CHECK (length(query) <= 1000),
    event_id     bigint,
    rhythm       text NOT NULL DEFAULT 'weekly' CHECK (rhythm IN ('daily', 'weekly')),
    -- 1 is Monday. The hour is in the site's time zone.
    weekday      smallint NOT NULL DEFAULT 4 CHECK (weekday BETWEEN 1 AND 7),
    hour         smallint NOT NULL DEFAULT 8 CHECK (hour BETWEEN 0 AND 23),
    -- The revision of the last email; null: there was none.
    since        bigint,
    -- What the person knows about the event.
    known        jsonb,
    confirmed_at timestamptz,
    paused       boolean NOT NULL DEFAULT false,
    -- When an email is due, or an event to be looked at again; null: unconfirmed, paused or suppressed.
    next_at      timestamptz,
    alerted_at   timestamptz,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (site_id, id),
    UNIQUE NULLS NOT DISTINCT (site_id, follower_id, query, event_id),
    CHECK (num_nonnulls(query, event_id) = 1),
    FOREIGN KEY (site_id, follower_id) REFERENCES followers (site_id, id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS follows_due_events ON follows (next_at) WHERE next_at IS NOT NULL AND event_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS follows_due_lists ON follows (next_at, site_id, query)
    WHERE next_at IS NOT NULL AND query IS NOT NULL;
CREATE INDEX IF NOT EXISTS follows_event ON follows (site_id, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS follows_unconfirmed ON follows (created_at) WHERE confirmed_at IS NULL;
COMMENT ON INDEX follows_due_events IS 'worker: alerts and reminders that are due, of all sites';
COMMENT ON INDEX follows_due_lists IS 'worker: digests that are due, of all sites; equal lists follow each other';
COMMENT ON INDEX follows_event IS 'the followers of an event';
COMMENT ON INDEX follows_unconfirmed IS 'worker: follows to forget, of all sites';

-- What happened on a day in the site's time zone.
CREATE TABLE IF NOT EXISTS mail_days (
    site_id   bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    day       date NOT NULL,
    confirmed integer NOT NULL DEFAULT 0,
    sent      integer NOT NULL DEFAULT 0,
    refused   integer NOT NULL DEFAULT 0,
    failed    integer NOT NULL DEFAULT 0,
    ended     integer NOT NULL DEFAULT 0,
    PRIMARY KEY (site_id, day)
);

-- Recipients of emails to followers on all sites, by hour. Kept for two hours, to recognize a failing relay.
CREATE TABLE IF NOT EXISTS mail_hours (
    hour       timestamptz PRIMARY KEY,
    recipients integer NOT NULL,
    refused    integer NOT NULL
);

CREATE OR REPLACE FUNCTION count_recipients(moment timestamptz, more integer, more_refused integer,
    OUT recipients bigint, OUT refused bigint)
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF more > 0 THEN
        INSERT INTO mail_hours AS h VALUES (date_trunc('hour', moment), more, more_refused)
            ON CONFLICT (hour) DO UPDATE SET recipients = h.recipients + more, refused = h.refused + more_refused;
        DELETE FROM mail_hours h WHERE h.hour < moment - interval '2 hours';
    END IF;
    SELECT coalesce(sum(h.recipients), 0), coalesce(sum(h.refused), 0) INTO recipients, refused
        FROM mail_hours h WHERE h.hour > moment - interval '2 hours';
END $$;

CREATE OR REPLACE FUNCTION forget_refusals() RETURNS void
LANGUAGE sql SECURITY DEFINER AS $$
    UPDATE followers SET refusals = 0, refusal_code = '' WHERE refusals > 0 AND suppressed_at IS NULL
$$;

-- While a site was switched off, changes of followed events were not announced, so all of them are looked at again.
CREATE OR REPLACE FUNCTION restart_alerts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO log_consumers (site_id, consumer, cursor) VALUES (NEW.id, 'alerts', -1)
        ON CONFLICT (site_id, consumer) DO UPDATE SET cursor = -1;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER restart_alerts AFTER UPDATE OF follow_by_email ON sites FOR EACH ROW
    WHEN (NEW.follow_by_email AND NOT OLD.follow_by_email) EXECUTE FUNCTION restart_alerts();

-- At most 500 follows with an email that is due: first those of events. Written in PL/pgSQL, which keeps the plan: it
-- runs every ten seconds, and planning would read more than the statement. The planner must know the inner limits.
-- Subqueries look up only people and sites of these follows; joins might read all of them. CASE prevents an anti
-- join, which seems to leave nothing if there is only one site, so that the planner would read all rows and sort them.
CREATE OR REPLACE FUNCTION due_follows(cutoff timestamptz, most integer) RETURNS TABLE (
    site_id bigint, timezone text, id uuid, follower_id uuid, email text, language text, query text, event_id bigint,
    rhythm text, weekday smallint, hour smallint, since bigint, known jsonb, alerted_at timestamptz, next_at timestamptz
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT d.site_id, s.timezone, d.id, d.follower_id, p.email, p.language, d.query, d.event_id, d.rhythm, d.weekday,
        d.hour, d.since, d.known, d.alerted_at, d.next_at
    FROM (
        (SELECT f.*, 1 AS part FROM follows f
            WHERE f.next_at IS NOT NULL AND f.event_id IS NOT NULL AND f.next_at <= cutoff
                AND CASE WHEN EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = f.site_id)
                    THEN false ELSE true END
            ORDER BY f.next_at LIMIT 500)
        UNION ALL
        (SELECT f.*, 2 FROM follows f
            WHERE f.next_at IS NOT NULL AND f.query IS NOT NULL AND f.next_at <= cutoff
                AND CASE WHEN EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = f.site_id)
                    THEN false ELSE true END
            ORDER BY f.next_at, f.site_id, f.query LIMIT 500)) d
    CROSS JOIN LATERAL (
        SELECT p.email, p.language FROM followers p WHERE p.site_id = d.site_id AND p.id = d.follower_id OFFSET 0) p
    CROSS JOIN LATERAL (SELECT s.timezone FROM sites s WHERE s.id = d.site_id OFFSET 0) s
    ORDER BY d.part, d.next_at, d.site_id, d.query LIMIT most;
END $$;

-- Sites with follows that nobody has confirmed in time, with followed events, with people who follow nothing, and with
-- suppressed addresses to forget.
CREATE OR REPLACE FUNCTION sites_with_stale_follows(confirmed_by timestamptz, suppressed_by timestamptz)
RETURNS TABLE (site_id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.site_id FROM (
        SELECT f.site_id FROM follows f WHERE f.confirmed_at IS NULL AND f.created_at < confirmed_by
        UNION SELECT c.site_id FROM log_consumers c WHERE c.consumer = 'alerts'
        UNION SELECT p.site_id FROM followers p WHERE p.suppressed_at < suppressed_by
        UNION SELECT p.site_id FROM followers p WHERE p.suppressed_at IS NULL AND NOT EXISTS (
            SELECT FROM follows f WHERE f.site_id = p.site_id AND f.follower_id = p.id)) s
    WHERE NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.site_id)
$$;

CREATE OR REPLACE FUNCTION enqueue_job(task text, arguments jsonb, at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
        CASE task WHEN 'make_sizes' THEN 'images' WHEN 'send_email' THEN 'email'
            WHEN 'send_proposal_email' THEN 'email' WHEN 'send_webhook_notice' THEN 'email'
            WHEN 'send_follow_email' THEN 'email' WHEN 'plan_import' THEN 'background'
            WHEN 'apply_import' THEN 'background' ELSE 'default' END,
        task, CASE task WHEN 'publish' THEN 1 ELSE 0 END, NULL, NULL,
        arguments || jsonb_build_object('site_id', current_setting('kalends.site_id')::bigint),
        at)::procrastinate_job_to_defer_v1]);
END $$;

-- Sites with a public form or with followers, and those of them without a base URL.
CREATE OR REPLACE FUNCTION count_open_sites(OUT open_sites bigint, OUT nameless_sites bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT count(*), count(*) FILTER (WHERE coalesce(s.base_url, '') = '') FROM sites s
    WHERE s.submissions OR s.follow_by_email
$$;

DO $$
DECLARE
    name text;
    called regprocedure;
BEGIN
    FOREACH name IN ARRAY ARRAY['followers', 'follows', 'mail_days'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('DROP POLICY IF EXISTS site_fence ON %I', name);
        EXECUTE format('CREATE POLICY site_fence ON %I TO kalends_app
            USING (site_id = current_setting(''kalends.site_id'')::bigint)
            WITH CHECK (site_id = current_setting(''kalends.site_id'')::bigint)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO kalends_app', name);
    END LOOP;
    FOREACH called IN ARRAY ARRAY['due_follows(timestamptz, integer)', 'restart_alerts()', 'forget_refusals()',
        'count_recipients(timestamptz, integer, integer)', 'sites_with_stale_follows(timestamptz, timestamptz)',
        'count_open_sites()', 'enqueue_job(text, jsonb, timestamptz)']::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', called, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', called);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO kalends_app', called);
    END LOOP;
END $$;
