-- Followers of the change log. Writes touch none of these tables: the worker compares cursors with the sites' revisions.
CREATE TABLE IF NOT EXISTS log_consumers (
    site_id     bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    -- `webhook:{id}` or another kind of consumer.
    consumer    text NOT NULL CHECK (consumer <> '' AND length(consumer) <= 60),
    -- Every change up to this revision is handled.
    cursor      bigint NOT NULL,
    -- While a consumer catches up: records whose latest change is up to this revision are handled. Others may have
    -- earlier changes after the cursor. Null: everything up to the cursor is handled, and nothing after it.
    position    bigint,
    -- When work is due even without a change; null: never.
    due_at      timestamptz,
    -- No work before this time; infinity while paused or disabled.
    not_before  timestamptz NOT NULL DEFAULT '-infinity',
    -- Waits in a row, which determine the length of the next one.
    waits       smallint NOT NULL DEFAULT 0,
    -- The token of the task that handles the consumer. Other tasks leave it alone until `lease_until`.
    lease       uuid,
    lease_until timestamptz,
    PRIMARY KEY (site_id, consumer)
)
-- Leases and cursors change often.
WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS webhooks (
    site_id         bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id              text NOT NULL CHECK (id ~ '^[A-Za-z0-9]{12}$'),
    name            text NOT NULL CHECK (length(name) <= 200),
    url             text NOT NULL CHECK (length(url) BETWEEN 1 AND 2000),
    -- The account that receives notices; null: all administrators do.
    owner_id        bigint,
    created_at      timestamptz NOT NULL DEFAULT now(),
    -- Empty: all kinds except series.
    kinds           text[] NOT NULL DEFAULT '{}',
    -- Parameters of `changes` that select events by their links, as strings.
    filter          jsonb NOT NULL DEFAULT '{}',
    is_thin         boolean NOT NULL DEFAULT false,
    -- The secret is derived from it. The previous one is valid for 24 hours after `rotated_at`.
    generation      integer NOT NULL DEFAULT 1 CHECK (generation > 0),
    rotated_at      timestamptz,
    -- Part of message IDs: receivers drop messages whose ID they know.
    replays         integer NOT NULL DEFAULT 0,
    -- The number of the last delivery.
    sent            bigint NOT NULL DEFAULT 0,
    -- The first failure after the last success.
    failing_since   timestamptz,
    notified_at     timestamptz,
    disabled_at     timestamptz,
    disabled_reason text NOT NULL DEFAULT '' CHECK (disabled_reason IN ('', 'paused', 'gone', 'failing')),
    PRIMARY KEY (site_id, id),
    CHECK ((disabled_at IS NULL) = (disabled_reason = '')),
    FOREIGN KEY (site_id, owner_id) REFERENCES users (site_id, id) ON DELETE SET NULL (owner_id)
);

-- Records to send again, whatever their state is then. `kind` is `webhook` for a test message and `site` for a reset,
-- both with `record_id` 0.
CREATE TABLE IF NOT EXISTS webhook_pending (
    site_id         bigint NOT NULL,
    webhook_id      text NOT NULL,
    kind            text NOT NULL,
    record_id       bigint NOT NULL,
    -- The receiver has every change of the record up to this revision.
    since           bigint NOT NULL,
    attempts        smallint NOT NULL DEFAULT 0,
    -- Null: given up until the record changes.
    next_attempt_at timestamptz,
    last_status     smallint,
    last_error      text NOT NULL DEFAULT '',
    PRIMARY KEY (site_id, webhook_id, kind, record_id),
    FOREIGN KEY (site_id, webhook_id) REFERENCES webhooks (site_id, id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS webhook_pending_due ON webhook_pending (site_id, webhook_id, next_attempt_at);

-- The newest 1,000 of each endpoint.
CREATE TABLE IF NOT EXISTS webhook_deliveries (
    site_id      bigint NOT NULL,
    webhook_id   text NOT NULL,
    number       bigint NOT NULL,
    sent_at      timestamptz NOT NULL,
    message_id   text NOT NULL,
    type         text NOT NULL,
    kind         text NOT NULL,
    record_id    bigint NOT NULL,
    revision     bigint NOT NULL,
    attempt      smallint NOT NULL,
    -- Null: no response.
    status       smallint,
    error        text NOT NULL DEFAULT '',
    milliseconds integer NOT NULL,
    PRIMARY KEY (site_id, webhook_id, number),
    FOREIGN KEY (site_id, webhook_id) REFERENCES webhooks (site_id, id) ON DELETE CASCADE
);
COMMENT ON INDEX webhook_pending_due IS 'worker: the next retries of an endpoint';

-- Lease consumers with work, in all sites except those that another cell serves. Only rows of consumers are locked.
CREATE OR REPLACE FUNCTION take_log_consumers(token uuid, seconds double precision, most integer)
RETURNS TABLE (site_id bigint, consumer text)
LANGUAGE sql VOLATILE SECURITY DEFINER AS $$
    WITH due AS MATERIALIZED (
        -- A subquery looks up only sites with consumers; a join might read all sites.
        SELECT c.site_id, c.consumer FROM log_consumers c
        WHERE c.not_before <= now() AND (c.lease_until IS NULL OR c.lease_until <= now())
            AND (c.due_at <= now() OR c.cursor < (SELECT s.revision FROM sites s WHERE s.id = c.site_id))
            AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = c.site_id)
        ORDER BY random() LIMIT most FOR UPDATE OF c SKIP LOCKED
    )
    UPDATE log_consumers taken SET lease = token, lease_until = now() + make_interval(secs => seconds)
    FROM due WHERE taken.site_id = due.site_id AND taken.consumer = due.consumer
    RETURNING taken.site_id, taken.consumer
$$;

-- For metrics: endpoints by state, and the age of the oldest change that an endpoint has yet to receive.
CREATE OR REPLACE FUNCTION measure_webhooks(OUT active bigint, OUT paused bigint, OUT disabled bigint,
    OUT oldest_seconds double precision)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT count(*) FILTER (WHERE w.disabled_at IS NULL), count(*) FILTER (WHERE w.disabled_reason = 'paused'),
        count(*) FILTER (WHERE w.disabled_reason IN ('gone', 'failing')),
        extract(epoch FROM now() - min((SELECT c.changed_at FROM changes c WHERE c.site_id = w.site_id
            AND c.revision > l.cursor ORDER BY c.revision LIMIT 1)) FILTER (WHERE w.disabled_at IS NULL))::float8
    FROM webhooks w LEFT JOIN log_consumers l ON l.site_id = w.site_id AND l.consumer = 'webhook:' || w.id
    WHERE NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = w.site_id)
$$;

-- Emails about webhooks use the queue of the other emails.
CREATE OR REPLACE FUNCTION enqueue_job(task text, arguments jsonb, at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
        CASE task WHEN 'make_sizes' THEN 'images' WHEN 'send_email' THEN 'email'
            WHEN 'send_proposal_email' THEN 'email' WHEN 'send_webhook_notice' THEN 'email'
            WHEN 'plan_import' THEN 'background' WHEN 'apply_import' THEN 'background' ELSE 'default' END,
        task, CASE task WHEN 'publish' THEN 1 ELSE 0 END, NULL, NULL,
        arguments || jsonb_build_object('site_id', current_setting('kalends.site_id')::bigint),
        at)::procrastinate_job_to_defer_v1]);
END $$;

DO $$
DECLARE
    name text;
    called regprocedure;
BEGIN
    FOREACH name IN ARRAY ARRAY['log_consumers', 'webhooks', 'webhook_pending', 'webhook_deliveries'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('DROP POLICY IF EXISTS site_fence ON %I', name);
        EXECUTE format('CREATE POLICY site_fence ON %I TO kalends_app
            USING (site_id = current_setting(''kalends.site_id'')::bigint)
            WITH CHECK (site_id = current_setting(''kalends.site_id'')::bigint)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO kalends_app', name);
    END LOOP;
    FOREACH called IN ARRAY ARRAY['take_log_consumers(uuid, double precision, integer)',
        'measure_webhooks()',
        'enqueue_job(text, jsonb, timestamptz)']::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', called, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', called);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO kalends_app', called);
    END LOOP;
END $$;
