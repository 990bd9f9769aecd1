-- Imports: sources, items, runs and plans; identities of records that come from another calendar.

-- Calendars that move in keep their UIDs, which are not UUIDs.
ALTER TABLE events
    ALTER COLUMN uid TYPE text USING uid::text,
    ADD CHECK (length(uid) BETWEEN 1 AND 255),
    -- The ID of the event in the feeds of its former site; null: the UID is used.
    ADD COLUMN feed_guid text CHECK (length(feed_guid) BETWEEN 1 AND 2000);
ALTER TABLE series ALTER COLUMN uid TYPE text USING uid::text;

-- The host of the site whose records, up to this ID, have kept their IDs here; empty: there was none.
ALTER TABLE sites
    ADD COLUMN former_host text NOT NULL DEFAULT '',
    ADD COLUMN former_last_id bigint NOT NULL DEFAULT 0;

-- Descriptions refer to images of the media library as `media:ID`. Null: they have none.
CREATE FUNCTION inline_images(html text) RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN html LIKE '%src="media:%' THEN
        (SELECT array_agg(DISTINCT m[1]::bigint)
            FROM regexp_matches(html, 'src="media:([1-9][0-9]{0,15})"', 'g') AS m) END
$$;
ALTER TABLE events ADD COLUMN inline_image_ids bigint[]
    GENERATED ALWAYS AS (inline_images(description || excerpt)) STORED;
ALTER TABLE venues ADD COLUMN inline_image_ids bigint[] GENERATED ALWAYS AS (inline_images(description)) STORED;
ALTER TABLE organizers ADD COLUMN inline_image_ids bigint[] GENERATED ALWAYS AS (inline_images(description)) STORED;
ALTER TABLE series ADD COLUMN inline_image_ids bigint[] GENERATED ALWAYS AS (inline_images(description)) STORED;
CREATE INDEX events_inline_images ON events (site_id) WHERE inline_image_ids IS NOT NULL;
CREATE INDEX venues_inline_images ON venues (site_id) WHERE inline_image_ids IS NOT NULL;
CREATE INDEX organizers_inline_images ON organizers (site_id) WHERE inline_image_ids IS NOT NULL;
CREATE INDEX series_inline_images ON series (site_id) WHERE inline_image_ids IS NOT NULL;

-- A calendar, file or site from which records come.
CREATE TABLE import_sources (
    site_id              bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id                   bigint NOT NULL,
    kind                 text NOT NULL CHECK (kind IN ('ical', 'table', 'tec')),
    name                 text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- Empty: files are uploaded.
    url                  text NOT NULL DEFAULT '' CHECK (length(url) <= 2000),
    -- Minutes between two fetches; null: fetched on request only.
    interval_minutes     integer CHECK (interval_minutes BETWEEN 15 AND 10080),
    -- The user whose rights apply and who is notified of failures; null: the account was deleted.
    owner_id             bigint,
    default_status       text NOT NULL DEFAULT 'draft' CHECK (default_status IN ('publish', 'draft', 'pending', 'private')),
    default_category_id  bigint,
    -- Which value counts where the source and a person have both changed a field.
    authority            text NOT NULL DEFAULT 'local' CHECK (authority IN ('source', 'local', 'new_only')),
    -- The time zone of times without one; empty: such events are rejected.
    timezone             text NOT NULL DEFAULT '',
    -- The field of each column of a table, by the header of the column.
    columns              jsonb NOT NULL DEFAULT '{}',
    -- Of several sources of a record, the one with the lowest rank supplies a field.
    trust_rank           integer NOT NULL DEFAULT 100,
    allow_mass_deletion  boolean NOT NULL DEFAULT false,
    state                text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'closed')),
    etag                 text NOT NULL DEFAULT '',
    last_modified        text NOT NULL DEFAULT '',
    input_hash           bytea,
    -- Facts of a site that moves in: address, namespaces, time zone.
    facts                jsonb NOT NULL DEFAULT '{}',
    created_at           timestamptz NOT NULL,
    next_run_at          timestamptz,
    last_success_at      timestamptz,
    failures             integer NOT NULL DEFAULT 0,
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, owner_id) REFERENCES users (site_id, id) ON DELETE SET NULL (owner_id),
    FOREIGN KEY (site_id, default_category_id) REFERENCES categories (site_id, id)
        ON DELETE SET NULL (default_category_id)
);
-- For the job of all sites.
CREATE INDEX import_sources_due ON import_sources (next_run_at) WHERE state = 'active' AND next_run_at IS NOT NULL;

-- A record as its source knows it.
CREATE TABLE import_items (
    site_id        bigint NOT NULL,
    source_id      bigint NOT NULL,
    kind           text NOT NULL,
    -- The UID of an event, or the ID of a record of a site that moves in.
    identity       text NOT NULL CHECK (length(identity) BETWEEN 1 AND 1000),
    -- The RECURRENCE-ID of a date of a series in local time; empty: the event or the series itself.
    recurrence_id  text NOT NULL DEFAULT '',
    record_id      bigint NOT NULL,
    -- Finds an event whose UID has changed.
    fingerprint    text NOT NULL,
    -- The values that the source sent last, by parameter; no passwords.
    source_values  jsonb NOT NULL,
    -- The values of these fields that were stored afterwards, so that a later edit by a person is noticed.
    stored_values  jsonb NOT NULL DEFAULT '{}',
    first_seen_at  timestamptz NOT NULL,
    last_seen_at   timestamptz NOT NULL,
    -- Successful fetches without the item, one after the other.
    absences       integer NOT NULL DEFAULT 0,
    PRIMARY KEY (site_id, source_id, kind, identity, recurrence_id),
    FOREIGN KEY (site_id, source_id) REFERENCES import_sources (site_id, id) ON DELETE CASCADE
);
CREATE INDEX import_items_record ON import_items (site_id, kind, record_id);

CREATE TABLE import_runs (
    site_id         bigint NOT NULL,
    id              bigint NOT NULL,
    source_id       bigint NOT NULL,
    -- The user who started the run; null: the worker.
    user_id         bigint,
    -- The run that this one undoes.
    undoes          bigint,
    state           text NOT NULL CHECK (state IN
        ('planning', 'planned', 'applying', 'applied', 'unchanged', 'failed', 'discarded')),
    started_at      timestamptz NOT NULL,
    planned_at      timestamptz,
    finished_at     timestamptz,
    -- The number of rows by action, and of rows applied.
    counts          jsonb NOT NULL DEFAULT '{}',
    -- A message {"text", "values"} with the cause of a failure.
    failure         jsonb,
    -- Why a person has to look at the plan, as messages.
    warnings        jsonb NOT NULL DEFAULT '[]',
    progress        jsonb NOT NULL DEFAULT '{}',
    options         jsonb NOT NULL DEFAULT '{}',
    -- The columns of a table and its first rows, to choose what each column means; null: no table.
    preview         jsonb,
    input_hash      bytea,
    first_revision  bigint,
    last_revision   bigint,
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, source_id) REFERENCES import_sources (site_id, id) ON DELETE CASCADE,
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE SET NULL (user_id)
);
CREATE INDEX import_runs_source ON import_runs (site_id, source_id, id DESC);

-- What a run does, record by record.
CREATE TABLE import_rows (
    site_id          bigint NOT NULL,
    run_id           bigint NOT NULL,
    -- The order in which rows are applied.
    number           bigint NOT NULL,
    action           text NOT NULL CHECK (action IN
        ('new', 'changed', 'moved', 'unchanged', 'gone', 'rejected', 'duplicate', 'linked')),
    kind             text NOT NULL,
    identity         text NOT NULL DEFAULT '',
    recurrence_id    text NOT NULL DEFAULT '',
    title            text NOT NULL DEFAULT '',
    record_id        bigint,
    -- The revision of the record when it was planned; another one is planned again.
    record_revision  bigint,
    -- The imported record in normal form; null: gone or rejected.
    imported         jsonb,
    -- The changed fields: {field: {"stored", "before", "now", "decision"}}.
    changes          jsonb NOT NULL DEFAULT '{}',
    -- Messages: why a row was rejected or waits, and what is lost.
    reasons          jsonb NOT NULL DEFAULT '[]',
    -- The line or row of the input.
    line             integer,
    state            text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'waiting', 'applied', 'skipped', 'failed')),
    -- The revisions that the row has written, from the first to the last.
    first_revision   bigint,
    revision         bigint,
    PRIMARY KEY (site_id, run_id, number),
    FOREIGN KEY (site_id, run_id) REFERENCES import_runs (site_id, id) ON DELETE CASCADE
);
CREATE INDEX import_rows_pending ON import_rows (site_id, run_id, number) WHERE state = 'pending';
CREATE INDEX import_rows_action ON import_rows (site_id, run_id, action, number);

-- The file that was uploaded last for a source, until the next one; its plan can be made again with other columns.
CREATE TABLE import_files (
    site_id      bigint NOT NULL,
    source_id    bigint NOT NULL,
    name         text NOT NULL CHECK (length(name) <= 255),
    content      bytea NOT NULL,
    uploaded_at  timestamptz NOT NULL,
    PRIMARY KEY (site_id, source_id),
    FOREIGN KEY (site_id, source_id) REFERENCES import_sources (site_id, id) ON DELETE CASCADE
);
ALTER TABLE import_files ENABLE ROW LEVEL SECURITY;
CREATE POLICY site_fence ON import_files TO kalends_app
    USING (site_id = current_setting('kalends.site_id')::bigint)
    WITH CHECK (site_id = current_setting('kalends.site_id')::bigint);
GRANT SELECT, INSERT, UPDATE, DELETE ON import_files TO kalends_app;

-- Pairs of events that people have declared different; the lower ID is the first.
CREATE TABLE not_duplicates (
    site_id   bigint NOT NULL,
    event_id  bigint NOT NULL,
    other_id  bigint NOT NULL CHECK (other_id > event_id),
    PRIMARY KEY (site_id, event_id, other_id),
    FOREIGN KEY (site_id, event_id) REFERENCES events (site_id, id) ON DELETE CASCADE,
    FOREIGN KEY (site_id, other_id) REFERENCES events (site_id, id) ON DELETE CASCADE
);
CREATE INDEX not_duplicates_other ON not_duplicates (site_id, other_id);

-- Paths of image files on the former site, without the host.
CREATE TABLE legacy_files (
    site_id   bigint NOT NULL,
    path      text NOT NULL CHECK (length(path) BETWEEN 1 AND 2000),
    media_id  bigint NOT NULL,
    width     integer NOT NULL,
    PRIMARY KEY (site_id, path),
    FOREIGN KEY (site_id, media_id) REFERENCES media (site_id, id) ON DELETE CASCADE
);
CREATE INDEX legacy_files_media ON legacy_files (site_id, media_id);

-- Beginnings of paths on the former site that differ here, such as `/veranstaltung/` for `/event/`.
CREATE TABLE prefix_redirects (
    site_id  bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    old      text NOT NULL CHECK (length(old) BETWEEN 2 AND 500),
    new      text NOT NULL CHECK (length(new) BETWEEN 1 AND 500),
    PRIMARY KEY (site_id, old)
);

-- Due sources of all sites, for the worker.
CREATE FUNCTION due_imports(most integer) RETURNS TABLE (site_id bigint, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.site_id, s.id FROM import_sources s
    WHERE s.state = 'active' AND s.next_run_at <= now() ORDER BY s.next_run_at LIMIT most
$$;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION due_imports(integer) SET search_path = pg_catalog, %I, pg_temp', current_schema());
    REVOKE ALL ON FUNCTION due_imports(integer) FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION due_imports(integer) TO kalends_app;
END $$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['import_sources', 'import_items', 'import_runs', 'import_rows', 'not_duplicates', 'legacy_files',
        'prefix_redirects']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY site_fence ON %I TO kalends_app
            USING (site_id = current_setting(''kalends.site_id'')::bigint)
            WITH CHECK (site_id = current_setting(''kalends.site_id'')::bigint)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO kalends_app', name);
    END LOOP;
END $$;
