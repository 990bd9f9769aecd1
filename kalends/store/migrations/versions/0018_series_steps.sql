-- The predecessor of each occurrence, to find the first of a series in a list (decision 0018).

-- The public occurrences, each with the start of the one before it in its series. An occurrence is the first of its
-- series in a list from an instant on if it starts then or later and its predecessor started earlier. Occurrences
-- with a password are not here, because their series is not public.
CREATE TABLE series_steps (
    site_id        bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id             bigint NOT NULL,
    series_id      bigint NOT NULL,
    -- Copies of the columns of the event.
    start_utc      timestamptz NOT NULL,
    end_utc        timestamptz NOT NULL,
    published_at   timestamptz NOT NULL,
    -- -infinity for the first of its series.
    previous_start timestamptz NOT NULL,
    -- Class of the time since the predecessor. An occurrence of class n is the first from an instant on only if it
    -- starts less than the limit of n after that instant, so the first occurrences are found without reading the
    -- others. The limits are those of common rules (a day, a week, a month, a year) plus the hour of a clock change.
    -- kinds/event_list/first_dates.py has the same limits.
    gap_class      smallint NOT NULL GENERATED ALWAYS AS (
                       CASE WHEN previous_start = '-infinity' THEN 99 ELSE
                           width_bucket(extract(epoch FROM start_utc - previous_start), ARRAY[
                               3601, 14401, 43201, 90001, 176401, 349201, 608401, 1213201, 2422801, 2682001,
                               5360401, 10717201, 15987601, 31626001, 63248401, 126489601]::numeric[])
                       END) STORED,
    PRIMARY KEY (site_id, id)
);
CREATE INDEX series_steps_gap ON series_steps (site_id, gap_class, start_utc, published_at, id)
    INCLUDE (previous_start, end_utc, series_id);

-- The numbers of these occurrences that start and end on each UTC day: with event_days, the number of other events.
CREATE TABLE series_days (
    site_id bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    day     date NOT NULL,
    starts  bigint NOT NULL,
    ends    bigint NOT NULL,
    PRIMARY KEY (site_id, day)
);

-- The public events that are not in series_steps, in the order of lists.
CREATE INDEX events_single ON events (site_id, start_utc, published_at, id) INCLUDE (end_utc)
    WHERE status = 'publish' AND NOT hide_from_listings AND (series_id IS NULL OR password_hash IS NOT NULL);

-- Each of the three triggers has its own plans of these statements, and plans only those that it executes.
CREATE FUNCTION keep_series_steps() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- Occurrences that have left their place in the series, and those that have taken one.
    gone series_steps[];
    added series_steps[];
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT array_agg(ROW (site_id, id, series_id, start_utc, end_utc, published_at, NULL, NULL)::series_steps)
        INTO added FROM new_rows WHERE series_id IS NOT NULL AND listed AND password_hash IS NULL;
    ELSIF TG_OP = 'DELETE' THEN
        SELECT array_agg(ROW (site_id, id, series_id, start_utc, end_utc, published_at, NULL, NULL)::series_steps)
        INTO gone FROM old_rows WHERE series_id IS NOT NULL AND listed AND password_hash IS NULL;
    ELSIF EXISTS (SELECT FROM new_rows WHERE series_id IS NOT NULL)
        OR EXISTS (SELECT FROM old_rows WHERE series_id IS NOT NULL) THEN
        WITH before AS MATERIALIZED (
            SELECT site_id, id, series_id, start_utc, end_utc, published_at FROM old_rows
            WHERE series_id IS NOT NULL AND listed AND password_hash IS NULL),
        after AS MATERIALIZED (
            SELECT site_id, id, series_id, start_utc, end_utc, published_at FROM new_rows
            WHERE series_id IS NOT NULL AND listed AND password_hash IS NULL)
        SELECT
            (SELECT array_agg(ROW (g.*, NULL, NULL)::series_steps) FROM (TABLE before EXCEPT TABLE after) g),
            (SELECT array_agg(ROW (a.*, NULL, NULL)::series_steps) FROM (TABLE after EXCEPT TABLE before) a)
        INTO gone, added;
    END IF;
    IF gone IS NULL AND added IS NULL THEN
        RETURN NULL;
    END IF;
    DELETE FROM series_steps s USING unnest(gone) g WHERE s.site_id = g.site_id AND s.id = g.id;
    -- Besides the added occurrences, those change that follow a place which was left or taken.
    INSERT INTO series_steps AS s (site_id, id, series_id, start_utc, end_utc, published_at, previous_start)
    SELECT m.site_id, m.id, m.series_id, m.start_utc, m.end_utc, m.published_at,
        coalesce((SELECT p.start_utc FROM events p
            WHERE p.site_id = m.site_id AND p.series_id = m.series_id AND p.listed AND p.password_hash IS NULL
                AND (p.start_utc, p.id) < (m.start_utc, m.id)
            ORDER BY p.start_utc DESC, p.id DESC LIMIT 1), '-infinity')
    FROM (
        SELECT a.site_id, a.id, a.series_id, a.start_utc, a.end_utc, a.published_at FROM unnest(added) a
        UNION
        SELECT n.site_id, n.id, n.series_id, n.start_utc, n.end_utc, n.published_at
        FROM (SELECT * FROM unnest(added) UNION ALL SELECT * FROM unnest(gone)) c
        CROSS JOIN LATERAL (
            SELECT * FROM events n
            WHERE n.site_id = c.site_id AND n.series_id = c.series_id AND n.listed AND n.password_hash IS NULL
                AND (n.start_utc, n.id) > (c.start_utc, c.id)
            ORDER BY n.start_utc, n.id LIMIT 1) n) m
    ON CONFLICT (site_id, id) DO UPDATE SET previous_start = excluded.previous_start;
    INSERT INTO series_days AS d (site_id, day, starts, ends)
    SELECT site_id, day, sum(starts), sum(ends)
    FROM (SELECT a.*, 1 AS n FROM unnest(added) a UNION ALL SELECT g.*, -1 FROM unnest(gone) g) m
    CROSS JOIN LATERAL (VALUES
        ((m.start_utc AT TIME ZONE 'UTC')::date, m.n, 0),
        ((m.end_utc AT TIME ZONE 'UTC')::date, 0, m.n)) AS v (day, starts, ends)
    GROUP BY site_id, day
    HAVING sum(starts) <> 0 OR sum(ends) <> 0
    ON CONFLICT (site_id, day) DO UPDATE SET starts = d.starts + excluded.starts, ends = d.ends + excluded.ends;
    RETURN NULL;
END $$;

CREATE TRIGGER series_steps_insert AFTER INSERT ON events
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_series_steps();
CREATE TRIGGER series_steps_update AFTER UPDATE ON events
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_series_steps();
CREATE TRIGGER series_steps_delete AFTER DELETE ON events
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_series_steps();

-- Fills both tables from the events, where the triggers have not run.
CREATE FUNCTION rebuild_series_steps() RETURNS void LANGUAGE sql AS $$
    DELETE FROM series_steps;
    DELETE FROM series_days;
    INSERT INTO series_steps (site_id, id, series_id, start_utc, end_utc, published_at, previous_start)
    SELECT site_id, id, series_id, start_utc, end_utc, published_at,
        coalesce(lag(start_utc) OVER (PARTITION BY site_id, series_id ORDER BY start_utc, id), '-infinity')
    FROM events WHERE series_id IS NOT NULL AND listed AND password_hash IS NULL;
    INSERT INTO series_days (site_id, day, starts, ends)
    SELECT s.site_id, v.day, sum(v.starts), sum(v.ends) FROM series_steps s
    CROSS JOIN LATERAL (VALUES
        ((s.start_utc AT TIME ZONE 'UTC')::date, 1, 0),
        ((s.end_utc AT TIME ZONE 'UTC')::date, 0, 1)) AS v (day, starts, ends)
    GROUP BY s.site_id, v.day;
$$;
SELECT rebuild_series_steps();

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['series_steps', 'series_days'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY site_fence ON %I TO kalends_app
            USING (site_id = current_setting(''kalends.site_id'')::bigint)
            WITH CHECK (site_id = current_setting(''kalends.site_id'')::bigint)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO kalends_app', name);
    END LOOP;
    REVOKE ALL ON FUNCTION rebuild_series_steps() FROM PUBLIC;
END $$;
