-- Fixed search path of SECURITY DEFINER functions, rights of logins, and events with coordinates as a column.

-- The server reads the revision of the schema without being its owner.
GRANT SELECT ON alembic_version TO kalends_app;

-- The rights of the worker on the queue, which has jobs of all sites: a separate role that servers do not have.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'kalends_queue') THEN
        CREATE ROLE kalends_queue NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- Roles belong to the whole cluster: another database was migrated concurrently.
END $$;

DO $$
DECLARE
    found record;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO kalends_queue', current_schema());
    FOR found IN SELECT c.oid::regclass AS name, c.relkind FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relname LIKE 'procrastinate\_%'
            AND c.relkind IN ('r', 'S') LOOP
        IF found.relkind = 'S' THEN
            EXECUTE format('GRANT USAGE, SELECT ON SEQUENCE %s TO kalends_queue', found.name);
        ELSE
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO kalends_queue', found.name);
        END IF;
    END LOOP;
END $$;

-- Whether a published venue of the event has coordinates (the filter `geoloc`), updated by the triggers below.
-- Adding a column with a constant default is free, so the default is the value of most events; the others are updated.
DO $$
DECLARE
    mostly boolean := (SELECT count(*) FROM event_venues) > (SELECT count(*) FROM events) / 2;
BEGIN
    EXECUTE format('ALTER TABLE events ADD COLUMN placed boolean NOT NULL DEFAULT %L', mostly);
    UPDATE events e SET placed = p.placed
    FROM (SELECT o.site_id, o.id, count(v.id) > 0 AS placed FROM events o
          LEFT JOIN event_venues l ON l.site_id = o.site_id AND l.event_id = o.id
          LEFT JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
              AND v.status = 'publish' AND v.location IS NOT NULL
          GROUP BY o.site_id, o.id) p
    WHERE e.site_id = p.site_id AND e.id = p.id AND p.placed <> mostly;
    ALTER TABLE events ALTER COLUMN placed SET DEFAULT false;
END $$;

CREATE INDEX events_placed ON events (site_id, start_utc, date_utc, id) INCLUDE (end_utc, password_hash)
    WHERE status = 'publish' AND NOT hide_from_listings AND placed;
CREATE INDEX events_unplaced ON events (site_id, start_utc, date_utc, id) INCLUDE (end_utc, password_hash)
    WHERE status = 'publish' AND NOT hide_from_listings AND NOT placed;

CREATE FUNCTION place_linked_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE events e SET placed = true
    FROM (SELECT DISTINCT n.site_id, n.event_id FROM new_rows n
          JOIN venues v ON v.site_id = n.site_id AND v.id = n.venue_id
          WHERE v.status = 'publish' AND v.location IS NOT NULL) p
    WHERE e.site_id = p.site_id AND e.id = p.event_id AND NOT e.placed;
    RETURN NULL;
END $$;
CREATE TRIGGER event_placed_insert AFTER INSERT ON event_venues
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION place_linked_events();

CREATE FUNCTION place_unlinked_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE events e SET placed = false
    FROM (SELECT DISTINCT o.site_id, o.event_id FROM old_rows o) p
    WHERE e.site_id = p.site_id AND e.id = p.event_id AND e.placed AND NOT EXISTS (
        SELECT FROM event_venues l JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
        WHERE l.site_id = e.site_id AND l.event_id = e.id AND v.status = 'publish' AND v.location IS NOT NULL);
    RETURN NULL;
END $$;
CREATE TRIGGER event_placed_delete AFTER DELETE ON event_venues
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION place_unlinked_events();

-- A change of a venue affects all of its events. A few of them are updated immediately. If there are many, the venue
-- is marked: lists read the links instead of the column until the worker has updated the events in batches.
ALTER TABLE venues ADD COLUMN unsettled boolean NOT NULL DEFAULT false;
CREATE INDEX venues_unsettled ON venues (site_id, id) WHERE unsettled;

-- Corrects at most `most` events of a venue and returns their number.
CREATE FUNCTION settle_places(of_site bigint, of_venue bigint, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    corrected integer;
BEGIN
    UPDATE events u SET placed = NOT u.placed
    WHERE u.site_id = of_site AND u.id IN (
        SELECT e.id FROM event_venues m JOIN events e ON e.site_id = m.site_id AND e.id = m.event_id
        WHERE m.site_id = of_site AND m.venue_id = of_venue AND e.placed <> EXISTS (
            SELECT FROM event_venues l JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
            WHERE l.site_id = e.site_id AND l.event_id = e.id AND v.status = 'publish' AND v.location IS NOT NULL)
        LIMIT most);
    GET DIAGNOSTICS corrected = ROW_COUNT;
    RETURN corrected;
END $$;

CREATE FUNCTION mark_venue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.unsettled := NEW.unsettled OR (SELECT count(*) FROM (
        SELECT FROM event_venues l WHERE l.site_id = NEW.site_id AND l.venue_id = NEW.id LIMIT 501) c) > 500;
    RETURN NEW;
END $$;
CREATE TRIGGER venue_marked BEFORE UPDATE ON venues FOR EACH ROW
    WHEN ((OLD.status = 'publish' AND OLD.geo_lat IS NOT NULL) <> (NEW.status = 'publish' AND NEW.geo_lat IS NOT NULL))
    EXECUTE FUNCTION mark_venue();

CREATE FUNCTION place_events_of_venue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM settle_places(NEW.site_id, NEW.id, 500);
    RETURN NULL;
END $$;
CREATE TRIGGER event_placed_by_venue AFTER UPDATE ON venues FOR EACH ROW
    WHEN (NOT NEW.unsettled AND (OLD.status = 'publish' AND OLD.geo_lat IS NOT NULL)
        <> (NEW.status = 'publish' AND NEW.geo_lat IS NOT NULL))
    EXECUTE FUNCTION place_events_of_venue();

-- Marked venues of all sites, for the worker.
CREATE FUNCTION unsettled_venues(most integer) RETURNS TABLE (site_id bigint, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT v.site_id, v.id FROM venues v WHERE v.unsettled LIMIT most
$$;
REVOKE ALL ON FUNCTION unsettled_venues(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION unsettled_venues(integer) TO kalends_app;

-- SECURITY DEFINER functions resolve names in the schema of the owner, never among temporary objects of the caller.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['enter_site(text)', 'enter_site_number(bigint)',
        'enqueue_job(text, jsonb, timestamptz)', 'due_records(integer)', 'old_trash(timestamptz, integer)',
        'sites_with_old_changes(timestamptz)', 'site_clocks(text[])', 'unsettled_venues(integer)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', name, current_schema());
    END LOOP;
END $$;
