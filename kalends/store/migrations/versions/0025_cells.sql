-- The name of this database in the directory of sites. Without a row there is no directory, and a single site serves
-- every host; with one, a host without a row in `site_hosts` is unknown.
CREATE TABLE cell (
    is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
    name        text NOT NULL
);

-- Sites with rows in this database that another cell serves: they are being copied to here, or have moved away and are
-- being deleted. Nothing refers to `sites`, because the row of an arriving site comes later.
CREATE TABLE unserved_sites (
    site_id bigint PRIMARY KEY,
    state   text NOT NULL CHECK (state IN ('arriving', 'departed')),
    move_id uuid NOT NULL,
    since   timestamptz NOT NULL DEFAULT now(),
    -- Of a departed site: its hosts and unfinished jobs, which the other cell takes over. They are removed and stored
    -- here in the transaction that ends the service, so that none is lost or done by two cells.
    hosts   text[] NOT NULL DEFAULT '{}',
    jobs    jsonb NOT NULL DEFAULT '[]'
);

-- Enters a site by host, or returns nothing. Without a directory, a single site has every host.
--
-- Where sites can move, a write holds a shared lock until its end. The switch to another cell waits for the lock, so
-- no write is in progress then, and a write that has waited for the switch finds the site departed.
CREATE OR REPLACE FUNCTION enter_site(asked_host text) RETURNS SETOF sites
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    found_site bigint;
BEGIN
    SELECT h.site_id INTO found_site FROM site_hosts h WHERE h.host = asked_host;
    IF found_site IS NULL THEN
        SELECT min(s.id) INTO found_site FROM (SELECT id FROM sites LIMIT 2) s
        WHERE NOT EXISTS (SELECT FROM cell) HAVING count(*) = 1;
    END IF;
    PERFORM set_config('kalends.site_id', coalesce(found_site, 0)::text, true);
    -- Two conditions, because the first alone needs no query.
    IF current_setting('transaction_read_only') = 'off' THEN
        IF EXISTS (SELECT FROM cell) THEN
            PERFORM pg_advisory_xact_lock_shared(hashtextextended('kalends.site', found_site));
        END IF;
    END IF;
    RETURN QUERY SELECT * FROM sites
        WHERE id = found_site AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = found_site);
END $$;

-- Enters a site by ID, for the worker and the commands.
CREATE OR REPLACE FUNCTION enter_site_number(asked bigint) RETURNS SETOF sites
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM set_config('kalends.site_id', asked::text, true);
    IF current_setting('transaction_read_only') = 'off' THEN
        IF EXISTS (SELECT FROM cell) THEN
            PERFORM pg_advisory_xact_lock_shared(hashtextextended('kalends.site', asked));
        END IF;
    END IF;
    RETURN QUERY SELECT * FROM sites
        WHERE id = asked AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = asked);
END $$;

-- In PL/pgSQL, which keeps the plans of the statement; every cached response asks for the revision of its site.
CREATE OR REPLACE FUNCTION site_revisions(asked_hosts text[])
RETURNS TABLE (host text, site_id bigint, revision bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT a.host, s.id, s.revision
    FROM unnest(asked_hosts) AS a (host)
    LEFT JOIN site_hosts h ON h.host = a.host
    JOIN sites s ON s.id = coalesce(h.site_id,
        (SELECT min(o.id) FROM (SELECT id FROM sites LIMIT 2) o
         WHERE NOT EXISTS (SELECT FROM cell) HAVING count(*) = 1));
END $$;

-- The revision of a site counts only where the site is served: caches would take an older one for the current one.
CREATE OR REPLACE FUNCTION site_changes(asked_site bigint, after_revision bigint, until_revision bigint, maximum integer)
RETURNS TABLE (
    last_revision bigint, revision bigint, kind text, record_id bigint, action text, was_public boolean,
    columns text[], old jsonb, new jsonb, present jsonb
)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.last, c.revision, c.kind, c.record_id, c.action, c.was_public,
        ARRAY(SELECT jsonb_object_keys(coalesce(c.before, '{}') || coalesce(c.after, '{}'))),
        (SELECT jsonb_object_agg(o.key, o.value) FROM jsonb_each(c.before) o WHERE o.key = ANY(s.names)),
        (SELECT jsonb_object_agg(o.key, o.value) FROM jsonb_each(c.after) o WHERE o.key = ANY(s.names)),
        (SELECT jsonb_build_object(
                'start_local', e.start_local, 'end_local', e.end_local, 'series_id', e.series_id,
                'venue_ids', ARRAY(SELECT l.venue_id FROM event_venues l
                    WHERE l.site_id = e.site_id AND l.event_id = e.id),
                'organizer_ids', ARRAY(SELECT l.organizer_id FROM event_organizers l
                    WHERE l.site_id = e.site_id AND l.event_id = e.id),
                'category_ids', ARRAY(SELECT l.category_id FROM event_categories l
                    WHERE l.site_id = e.site_id AND l.event_id = e.id),
                'tag_ids', ARRAY(SELECT l.tag_id FROM event_tags l
                    WHERE l.site_id = e.site_id AND l.event_id = e.id))
            FROM events e WHERE c.kind = 'events' AND e.site_id = s.id AND e.id = c.record_id)
    FROM (
        SELECT id, least(revision, until_revision) AS last, ARRAY['status', 'start_local', 'end_local', 'series_id',
            'venue_ids', 'organizer_ids', 'category_ids', 'tag_ids'] AS names
        FROM sites WHERE id = asked_site AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = asked_site)
    ) s
    LEFT JOIN changes c ON c.site_id = s.id AND c.revision > after_revision AND c.revision <= s.last
        AND s.last - after_revision <= maximum
    ORDER BY c.revision
$$;

-- The functions that find work for the worker in all sites leave out sites that another cell serves.
CREATE OR REPLACE FUNCTION due_records(most integer) RETURNS TABLE (site_id bigint, kind text, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    (SELECT s.site_id, 'series', s.id FROM series s WHERE s.status = 'future' AND s.published_at <= now()
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.site_id)
     LIMIT most)
    UNION ALL
    (SELECT e.site_id, 'events', e.id FROM events e WHERE e.status = 'future' AND e.published_at <= now()
     AND NOT EXISTS (SELECT FROM series s WHERE s.site_id = e.site_id AND s.id = e.series_id AND s.status = 'future')
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = e.site_id)
     LIMIT most)
    UNION ALL
    (SELECT v.site_id, 'venues', v.id FROM venues v WHERE v.status = 'future' AND v.published_at <= now()
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = v.site_id)
     LIMIT most)
    UNION ALL
    (SELECT o.site_id, 'organizers', o.id FROM organizers o WHERE o.status = 'future' AND o.published_at <= now()
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = o.site_id)
     LIMIT most)
$$;

CREATE OR REPLACE FUNCTION old_trash(cutoff timestamptz, most integer)
RETURNS TABLE (site_id bigint, kind text, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    (SELECT e.site_id, 'events', e.id FROM events e WHERE e.status = 'trash' AND e.trashed_at < cutoff
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = e.site_id)
     LIMIT most)
    UNION ALL
    (SELECT v.site_id, 'venues', v.id FROM venues v WHERE v.status = 'trash' AND v.trashed_at < cutoff
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = v.site_id)
     LIMIT most)
    UNION ALL
    (SELECT o.site_id, 'organizers', o.id FROM organizers o WHERE o.status = 'trash' AND o.trashed_at < cutoff
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = o.site_id)
     LIMIT most)
    UNION ALL
    (SELECT s.site_id, 'series', s.id FROM series s WHERE s.status = 'trash' AND s.trashed_at < cutoff
     AND NOT EXISTS (SELECT FROM events e WHERE e.site_id = s.site_id AND e.series_id = s.id)
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.site_id)
     LIMIT most)
$$;

CREATE OR REPLACE FUNCTION sites_with_old_changes(cutoff timestamptz) RETURNS TABLE (site_id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT DISTINCT c.site_id FROM changes c
    WHERE c.changed_at < cutoff AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = c.site_id)
$$;

CREATE OR REPLACE FUNCTION incomplete_series(horizon timestamptz, most integer)
RETURNS TABLE (site_id bigint, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.site_id, s.id FROM series s
    WHERE s.created_until < horizon AND s.status <> 'trash'
        AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.site_id)
    ORDER BY s.site_id, s.created_until LIMIT most
$$;

CREATE OR REPLACE FUNCTION due_imports(most integer) RETURNS TABLE (site_id bigint, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.site_id, s.id FROM import_sources s
    WHERE s.state = 'active' AND s.next_run_at <= now()
        AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.site_id)
    ORDER BY s.next_run_at LIMIT most
$$;

CREATE OR REPLACE FUNCTION unsettled_venues(most integer) RETURNS TABLE (site_id bigint, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT v.site_id, v.id FROM venues v
    WHERE v.unsettled AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = v.site_id)
    LIMIT most
$$;

-- CREATE OR REPLACE keeps owner and grants, but not the settings of a function.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['enter_site(text)', 'enter_site_number(bigint)', 'site_revisions(text[])',
        'due_records(integer)', 'old_trash(timestamptz, integer)', 'sites_with_old_changes(timestamptz)',
        'incomplete_series(timestamptz, integer)', 'due_imports(integer)', 'unsettled_venues(integer)',
        'site_changes(bigint, bigint, bigint, integer)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', name, current_schema());
    END LOOP;
    -- The planner does not know the cutoff and would expect a third of all entries to be older.
    ALTER FUNCTION sites_with_old_changes(timestamptz) SET enable_seqscan = off;
END $$;
