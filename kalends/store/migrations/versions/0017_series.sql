-- Series of recurring events. An occurrence is an ordinary event with a series and a slot.

CREATE TABLE series (
    site_id         bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    -- From the same counter as the IDs of events.
    id              bigint NOT NULL,
    uid             uuid NOT NULL,
    revision        bigint NOT NULL,
    -- The revision of the last change of times, place or status, for calendar feeds.
    sequence        bigint NOT NULL DEFAULT 0,
    author_id       bigint NOT NULL,
    status          text NOT NULL CHECK (status IN ('publish', 'draft', 'pending', 'private', 'future', 'trash')),
    trashed_status  text NOT NULL DEFAULT '',
    trashed_at      timestamptz,
    slug            text NOT NULL DEFAULT '' CHECK (length(slug) <= 220),
    published_at    timestamptz NOT NULL,
    modified_utc    timestamptz NOT NULL,
    -- The rules, one after the other: [{"uid", "rule", "start", "end", "timezone", "all_day"}]. `start` and `end` are
    -- the local times of the first date. An empty rule has that date only.
    parts           jsonb NOT NULL CHECK (jsonb_array_length(parts) BETWEEN 1 AND 100),
    -- The columns of the events that do not depend on the date, and the IDs of their linked records.
    template        jsonb NOT NULL,
    -- Later content: [{"from", "set"}], in the order of `from`.
    content_changes jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_array_length(content_changes) <= 100),
    -- Slots that no rule gives, and slots that are left out.
    added           timestamp[] NOT NULL DEFAULT '{}' CHECK (cardinality(added) <= 500),
    removed         timestamp[] NOT NULL DEFAULT '{}' CHECK (cardinality(removed) <= 1000),
    -- Copies from the template, for lists and for the usage of images.
    title           text NOT NULL CHECK (length(title) <= 10000),
    description     text NOT NULL DEFAULT '' CHECK (length(description) <= 300000),
    image_id        bigint,
    hide_from_listings boolean NOT NULL
        GENERATED ALWAYS AS (coalesce((template ->> 'hide_from_listings')::boolean, false)) STORED,
    -- All dates that start before this instant have been created; null: all dates of the series.
    created_until   timestamptz,
    -- The key of an imported series in its source.
    source          text,
    source_uid      text,
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, author_id) REFERENCES users (site_id, id),
    FOREIGN KEY (site_id, image_id) REFERENCES media (site_id, id)
);
CREATE UNIQUE INDEX series_slug ON series (site_id, slug) WHERE slug <> '';
CREATE UNIQUE INDEX series_uid ON series (site_id, uid);
CREATE UNIQUE INDEX series_revision ON series (site_id, revision);
CREATE UNIQUE INDEX series_source ON series (site_id, source, source_uid) WHERE source_uid IS NOT NULL;
CREATE INDEX series_image ON series (site_id, image_id) WHERE image_id IS NOT NULL;
-- For the jobs of all sites: series to extend, to publish, and old ones in the trash.
CREATE INDEX series_incomplete ON series (created_until) WHERE created_until IS NOT NULL AND status <> 'trash';
CREATE INDEX series_scheduled ON series (published_at) WHERE status = 'future';
CREATE INDEX series_trashed ON series (trashed_at) WHERE status = 'trash';

ALTER TABLE events
    ADD COLUMN series_id bigint,
    -- The local time that a rule gives the occurrence: its identity in the series. Moving one date does not change it.
    ADD COLUMN slot timestamp,
    -- The fields that differ from the series, by their parameters; start, end, time zone and `all_day` are `times`.
    -- Null: none.
    ADD COLUMN own_fields text[],
    ADD FOREIGN KEY (site_id, series_id) REFERENCES series (site_id, id),
    -- Deferred, because a shift of a series moves each date to the slot of the next one.
    ADD CONSTRAINT events_series_slot EXCLUDE USING btree (site_id WITH =, series_id WITH =, slot WITH =)
        WHERE (series_id IS NOT NULL) DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX events_series ON events (site_id, series_id, start_utc, id) INCLUDE (status) WHERE series_id IS NOT NULL;

-- The revision of the change of a series that caused a change of an event.
ALTER TABLE changes ADD COLUMN cause bigint;
CREATE INDEX changes_cause ON changes (site_id, cause) WHERE cause IS NOT NULL;

DO $$
BEGIN
    ALTER TABLE series ENABLE ROW LEVEL SECURITY;
    CREATE POLICY site_fence ON series TO kalends_app
        USING (site_id = current_setting('kalends.site_id')::bigint)
        WITH CHECK (site_id = current_setting('kalends.site_id')::bigint);
    GRANT SELECT, INSERT, UPDATE, DELETE ON series TO kalends_app;
END $$;

-- Dates of a scheduled series are published with it.
CREATE OR REPLACE FUNCTION due_records(most integer) RETURNS TABLE (site_id bigint, kind text, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    (SELECT s.site_id, 'series', s.id FROM series s WHERE s.status = 'future' AND s.published_at <= now() LIMIT most)
    UNION ALL
    (SELECT e.site_id, 'events', e.id FROM events e WHERE e.status = 'future' AND e.published_at <= now()
     AND NOT EXISTS (SELECT FROM series s WHERE s.site_id = e.site_id AND s.id = e.series_id AND s.status = 'future')
     LIMIT most)
    UNION ALL
    (SELECT v.site_id, 'venues', v.id FROM venues v WHERE v.status = 'future' AND v.published_at <= now() LIMIT most)
    UNION ALL
    (SELECT o.site_id, 'organizers', o.id FROM organizers o
     WHERE o.status = 'future' AND o.published_at <= now() LIMIT most)
$$;

-- A series follows its dates: it is deleted when none of them is left.
CREATE OR REPLACE FUNCTION old_trash(cutoff timestamptz, most integer)
RETURNS TABLE (site_id bigint, kind text, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    (SELECT e.site_id, 'events', e.id FROM events e WHERE e.status = 'trash' AND e.trashed_at < cutoff LIMIT most)
    UNION ALL
    (SELECT v.site_id, 'venues', v.id FROM venues v WHERE v.status = 'trash' AND v.trashed_at < cutoff LIMIT most)
    UNION ALL
    (SELECT o.site_id, 'organizers', o.id FROM organizers o
     WHERE o.status = 'trash' AND o.trashed_at < cutoff LIMIT most)
    UNION ALL
    (SELECT s.site_id, 'series', s.id FROM series s WHERE s.status = 'trash' AND s.trashed_at < cutoff
     AND NOT EXISTS (SELECT FROM events e WHERE e.site_id = s.site_id AND e.series_id = s.id)
     LIMIT most)
$$;

-- Series of all sites whose next dates have to be created.
CREATE FUNCTION incomplete_series(horizon timestamptz, most integer) RETURNS TABLE (site_id bigint, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.site_id, s.id FROM series s
    WHERE s.created_until < horizon AND s.status <> 'trash' ORDER BY s.site_id, s.created_until LIMIT most
$$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['due_records(integer)', 'old_trash(timestamptz, integer)',
        'incomplete_series(timestamptz, integer)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', name, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO kalends_app', name);
    END LOOP;
END $$;

-- A site with series has many events that are running at the same time. The index has all columns by which they are
-- selected and ordered.
DROP INDEX events_duration_class;
CREATE INDEX events_duration_class ON events (site_id, duration_class, start_utc)
    INCLUDE (end_utc, status, published_at, id) WHERE NOT hide_from_listings;
