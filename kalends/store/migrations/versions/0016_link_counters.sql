-- Counters of events per link and day, and statement triggers for all counters and copies. The statements of the
-- triggers are static, so that their plans are cached; EXECUTE would plan them again for every write. A session may
-- plan a statement for many rows and use the plan for one, so only nested loops over indexes are permitted, which suit
-- both.

-- The numbers of events, except hidden ones, that start on each UTC day, per venue (kind v), organizer (o),
-- category (c) and tag (t): the total of a list with one such filter is a sum over days. Protected events, which such
-- a filter finds only for some callers, are counted in both columns.
CREATE TABLE link_days (
    site_id   bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    record_id bigint NOT NULL,
    starts    integer NOT NULL,
    protected integer NOT NULL,
    day       date NOT NULL,
    kind      "char" NOT NULL,
    status    text NOT NULL,
    PRIMARY KEY (site_id, kind, record_id, status, day)
);

DO $$
BEGIN
    ALTER TABLE link_days ENABLE ROW LEVEL SECURITY;
    CREATE POLICY site_fence ON link_days TO kalends_app
        USING (site_id = current_setting('kalends.site_id')::bigint)
        WITH CHECK (site_id = current_setting('kalends.site_id')::bigint);
    GRANT SELECT, INSERT, UPDATE, DELETE ON link_days TO kalends_app;
END $$;

SELECT set_config(name, '256MB', true) FROM pg_settings WHERE name = 'work_mem' AND setting::bigint < 256 * 1024;
INSERT INTO link_days (site_id, record_id, starts, protected, day, kind, status)
SELECT l.site_id, l.record_id, count(*), count(e.password_hash), (e.start_utc AT TIME ZONE 'UTC')::date, l.kind,
    e.status
FROM (SELECT site_id, event_id, 'v'::"char" AS kind, venue_id AS record_id FROM event_venues
      UNION ALL SELECT site_id, event_id, 'o', organizer_id FROM event_organizers
      UNION ALL SELECT site_id, event_id, 'c', category_id FROM event_categories
      UNION ALL SELECT site_id, event_id, 't', tag_id FROM event_tags) l
JOIN events e ON e.site_id = l.site_id AND e.id = l.event_id
WHERE NOT e.hide_from_listings
GROUP BY l.site_id, l.kind, l.record_id, e.status, 5
ORDER BY l.site_id, l.kind, l.record_id, e.status, 5;

-- Events: inserted and deleted -----------------------------------------------------------------

DROP TRIGGER event_days_insert ON events;
DROP TRIGGER event_days_update ON events;
DROP TRIGGER event_days_delete ON events;
DROP FUNCTION count_event_days();

CREATE FUNCTION count_inserted_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO event_days AS d (site_id, status, day, starts, ends)
    SELECT n.site_id, n.status, v.day, sum(v.starts), sum(v.ends)
    FROM new_rows n
    CROSS JOIN LATERAL (VALUES
        ((n.start_utc AT TIME ZONE 'UTC')::date, 1, 0),
        ((n.end_utc AT TIME ZONE 'UTC')::date, 0, 1)) AS v (day, starts, ends)
    WHERE NOT n.hide_from_listings
    GROUP BY n.site_id, n.status, v.day
    ON CONFLICT (site_id, status, day)
    DO UPDATE SET starts = d.starts + excluded.starts, ends = d.ends + excluded.ends;
    RETURN NULL;
END $$;
CREATE TRIGGER event_days_insert AFTER INSERT ON events
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION count_inserted_events();

-- Numbers become smaller by UPDATE: nothing is inserted for a site that is being deleted.
CREATE FUNCTION count_deleted_events() RETURNS trigger LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    UPDATE event_days d SET starts = d.starts - m.starts, ends = d.ends - m.ends
    FROM (SELECT o.site_id, o.status, v.day, sum(v.starts) AS starts, sum(v.ends) AS ends
          FROM old_rows o
          CROSS JOIN LATERAL (VALUES
              ((o.start_utc AT TIME ZONE 'UTC')::date, 1, 0),
              ((o.end_utc AT TIME ZONE 'UTC')::date, 0, 1)) AS v (day, starts, ends)
          WHERE NOT o.hide_from_listings
          GROUP BY o.site_id, o.status, v.day) m
    WHERE d.site_id = m.site_id AND d.status = m.status AND d.day = m.day;
    RETURN NULL;
END $$;
CREATE TRIGGER event_days_delete AFTER DELETE ON events
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION count_deleted_events();

-- The links of a deleted event are deleted with it, when its row can no longer be read. They are counted before.
CREATE FUNCTION count_links_of_deleted_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE link_days d SET starts = d.starts - 1, protected = d.protected - (OLD.password_hash IS NOT NULL)::integer
    FROM (SELECT 'v'::"char" AS kind, venue_id AS record_id FROM event_venues
              WHERE site_id = OLD.site_id AND event_id = OLD.id
          UNION ALL SELECT 'o', organizer_id FROM event_organizers WHERE site_id = OLD.site_id AND event_id = OLD.id
          UNION ALL SELECT 'c', category_id FROM event_categories WHERE site_id = OLD.site_id AND event_id = OLD.id
          UNION ALL SELECT 't', tag_id FROM event_tags WHERE site_id = OLD.site_id AND event_id = OLD.id) l
    WHERE d.site_id = OLD.site_id AND d.kind = l.kind AND d.record_id = l.record_id AND d.status = OLD.status
        AND d.day = (OLD.start_utc AT TIME ZONE 'UTC')::date;
    RETURN OLD;
END $$;
CREATE TRIGGER link_days_delete BEFORE DELETE ON events FOR EACH ROW
    WHEN (NOT OLD.hide_from_listings) EXECUTE FUNCTION count_links_of_deleted_event();

-- Events: updated ------------------------------------------------------------------------------

-- The counters, and the copies in the link tables, follow the events. EXCEPT finds the changed events in linear time
-- with any plan, because it does not join the two transition tables. Most updates change none of these columns.
DROP TRIGGER event_links_follow ON events;
DROP FUNCTION copy_event_to_links();

CREATE FUNCTION follow_updated_events() RETURNS trigger LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    IF NOT EXISTS (
        SELECT site_id, id, status, hide_from_listings, start_utc, end_utc, password_hash IS NULL FROM new_rows
        EXCEPT
        SELECT site_id, id, status, hide_from_listings, start_utc, end_utc, password_hash IS NULL FROM old_rows) THEN
        RETURN NULL;
    END IF;

    INSERT INTO event_days AS d (site_id, status, day, starts, ends)
    SELECT m.site_id, m.status, v.day, sum(v.starts), sum(v.ends)
    FROM (SELECT site_id, status, start_utc, end_utc, hide_from_listings, 1 AS n FROM new_rows
          UNION ALL
          SELECT site_id, status, start_utc, end_utc, hide_from_listings, -1 FROM old_rows) m
    CROSS JOIN LATERAL (VALUES
        ((m.start_utc AT TIME ZONE 'UTC')::date, m.n, 0),
        ((m.end_utc AT TIME ZONE 'UTC')::date, 0, m.n)) AS v (day, starts, ends)
    WHERE NOT m.hide_from_listings
    GROUP BY m.site_id, m.status, v.day
    HAVING sum(v.starts) <> 0 OR sum(v.ends) <> 0
    ON CONFLICT (site_id, status, day)
    DO UPDATE SET starts = d.starts + excluded.starts, ends = d.ends + excluded.ends;

    INSERT INTO link_days AS d (site_id, record_id, starts, protected, day, kind, status)
    SELECT m.site_id, l.record_id, sum(m.n), sum(m.n * m.protected), m.day, l.kind, m.status
    FROM (SELECT *, 1 AS n FROM (
              SELECT site_id, id, status, (start_utc AT TIME ZONE 'UTC')::date AS day,
                  (password_hash IS NOT NULL)::integer AS protected FROM new_rows WHERE NOT hide_from_listings
              EXCEPT
              SELECT site_id, id, status, (start_utc AT TIME ZONE 'UTC')::date,
                  (password_hash IS NOT NULL)::integer FROM old_rows WHERE NOT hide_from_listings) added
          UNION ALL
          SELECT *, -1 FROM (
              SELECT site_id, id, status, (start_utc AT TIME ZONE 'UTC')::date,
                  (password_hash IS NOT NULL)::integer FROM old_rows WHERE NOT hide_from_listings
              EXCEPT
              SELECT site_id, id, status, (start_utc AT TIME ZONE 'UTC')::date,
                  (password_hash IS NOT NULL)::integer FROM new_rows WHERE NOT hide_from_listings) removed) m
    CROSS JOIN LATERAL (
        SELECT 'v'::"char" AS kind, venue_id AS record_id FROM event_venues
            WHERE site_id = m.site_id AND event_id = m.id
        UNION ALL SELECT 'o', organizer_id FROM event_organizers WHERE site_id = m.site_id AND event_id = m.id
        UNION ALL SELECT 'c', category_id FROM event_categories WHERE site_id = m.site_id AND event_id = m.id
        UNION ALL SELECT 't', tag_id FROM event_tags WHERE site_id = m.site_id AND event_id = m.id
        OFFSET 0) l
    GROUP BY m.site_id, l.kind, l.record_id, m.status, m.day
    HAVING sum(m.n) <> 0 OR sum(m.n * m.protected) <> 0
    ON CONFLICT (site_id, kind, record_id, status, day)
    DO UPDATE SET starts = d.starts + excluded.starts, protected = d.protected + excluded.protected;

    UPDATE event_venues l SET start_utc = c.start_utc, listed = c.listed, published = c.status = 'publish'
    FROM (SELECT site_id, id, start_utc, listed, status FROM new_rows
          EXCEPT SELECT site_id, id, start_utc, listed, status FROM old_rows) c
    WHERE l.site_id = c.site_id AND l.event_id = c.id;
    UPDATE event_organizers l SET start_utc = c.start_utc, listed = c.listed, published = c.status = 'publish'
    FROM (SELECT site_id, id, start_utc, listed, status FROM new_rows
          EXCEPT SELECT site_id, id, start_utc, listed, status FROM old_rows) c
    WHERE l.site_id = c.site_id AND l.event_id = c.id;
    UPDATE event_categories l SET start_utc = c.start_utc, listed = c.listed, published = c.status = 'publish'
    FROM (SELECT site_id, id, start_utc, listed, status FROM new_rows
          EXCEPT SELECT site_id, id, start_utc, listed, status FROM old_rows) c
    WHERE l.site_id = c.site_id AND l.event_id = c.id;
    UPDATE event_tags l SET start_utc = c.start_utc, listed = c.listed, published = c.status = 'publish'
    FROM (SELECT site_id, id, start_utc, listed, status FROM new_rows
          EXCEPT SELECT site_id, id, start_utc, listed, status FROM old_rows) c
    WHERE l.site_id = c.site_id AND l.event_id = c.id;
    RETURN NULL;
END $$;
CREATE TRIGGER event_links_follow AFTER UPDATE ON events
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION follow_updated_events();

-- Links: inserted and deleted ------------------------------------------------------------------

-- An update of a link changes its position or its copies, which do not count. The links of an event that has just been
-- deleted find no event; they have been counted already.
DO $do$
DECLARE
    link record;
BEGIN
    FOR link IN SELECT * FROM (VALUES ('event_venues', 'venue_id', 'v'), ('event_organizers', 'organizer_id', 'o'),
        ('event_categories', 'category_id', 'c'), ('event_tags', 'tag_id', 't')) AS v (name, record_id, kind) LOOP
        EXECUTE format($f$
            CREATE FUNCTION count_inserted_%1$s() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                INSERT INTO link_days AS d (site_id, record_id, starts, protected, day, kind, status)
                SELECT n.site_id, n.%2$I, count(*), count(e.password_hash), e.day, %3$L, e.status
                FROM new_rows n CROSS JOIN LATERAL (
                    SELECT e.status, (e.start_utc AT TIME ZONE 'UTC')::date AS day, e.password_hash FROM events e
                    WHERE e.site_id = n.site_id AND e.id = n.event_id AND NOT e.hide_from_listings OFFSET 0) e
                GROUP BY n.site_id, n.%2$I, e.status, e.day
                ON CONFLICT (site_id, kind, record_id, status, day)
                DO UPDATE SET starts = d.starts + excluded.starts, protected = d.protected + excluded.protected;
                RETURN NULL;
            END $$;
            CREATE TRIGGER link_days_insert AFTER INSERT ON %1$I REFERENCING NEW TABLE AS new_rows
                FOR EACH STATEMENT EXECUTE FUNCTION count_inserted_%1$s();

            CREATE FUNCTION count_deleted_%1$s() RETURNS trigger LANGUAGE plpgsql
            SET enable_hashjoin = off SET enable_mergejoin = off AS $$
            BEGIN
                UPDATE link_days d SET starts = d.starts - m.starts, protected = d.protected - m.protected
                FROM (SELECT o.site_id, o.%2$I AS record_id, e.status, e.day, count(*) AS starts,
                          count(e.password_hash) AS protected
                      FROM old_rows o CROSS JOIN LATERAL (
                          SELECT e.status, (e.start_utc AT TIME ZONE 'UTC')::date AS day, e.password_hash FROM events e
                          WHERE e.site_id = o.site_id AND e.id = o.event_id AND NOT e.hide_from_listings OFFSET 0) e
                      GROUP BY o.site_id, o.%2$I, e.status, e.day) m
                WHERE d.site_id = m.site_id AND d.kind = %3$L AND d.record_id = m.record_id AND d.status = m.status
                    AND d.day = m.day;
                RETURN NULL;
            END $$;
            CREATE TRIGGER link_days_delete AFTER DELETE ON %1$I REFERENCING OLD TABLE AS old_rows
                FOR EACH STATEMENT EXECUTE FUNCTION count_deleted_%1$s();
        $f$, link.name, link.record_id, link.kind);
    END LOOP;
END $do$;

-- The counts of terms --------------------------------------------------------------------------

DROP TRIGGER category_count_insert ON event_categories;
DROP TRIGGER category_count_update ON event_categories;
DROP TRIGGER category_count_delete ON event_categories;
DROP TRIGGER tag_count_insert ON event_tags;
DROP TRIGGER tag_count_update ON event_tags;
DROP TRIGGER tag_count_delete ON event_tags;
DROP FUNCTION count_term_events();

DO $do$
DECLARE
    term record;
    change record;
BEGIN
    FOR term IN SELECT * FROM (VALUES ('category', 'categories'), ('tag', 'tags')) AS v (name, terms) LOOP
        FOR change IN SELECT * FROM (VALUES
            ('insert', 'NEW TABLE AS new_rows',
             'SELECT site_id, %1$s_id AS id, 1 AS n FROM new_rows WHERE published'),
            ('update', 'OLD TABLE AS old_rows NEW TABLE AS new_rows',
             'SELECT site_id, %1$s_id AS id, 1 AS n FROM new_rows WHERE published
              UNION ALL SELECT site_id, %1$s_id, -1 FROM old_rows WHERE published'),
            ('delete', 'OLD TABLE AS old_rows',
             'SELECT site_id, %1$s_id AS id, -1 AS n FROM old_rows WHERE published')) AS v (name, tables, moved) LOOP
            EXECUTE format($f$
                CREATE FUNCTION count_%1$s_%3$s() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    UPDATE %2$I t SET count = t.count + c.n
                    FROM (SELECT site_id, id, sum(n) AS n FROM ($f$ || change.moved || $f$) m
                          GROUP BY site_id, id HAVING sum(n) <> 0) c
                    WHERE t.site_id = c.site_id AND t.id = c.id;
                    RETURN NULL;
                END $$;
                CREATE TRIGGER %1$s_count_%3$s AFTER %3$s ON event_%2$s REFERENCING %4$s
                    FOR EACH STATEMENT EXECUTE FUNCTION count_%1$s_%3$s();
            $f$, term.name, term.terms, change.name, change.tables);
        END LOOP;
    END LOOP;
END $do$;
