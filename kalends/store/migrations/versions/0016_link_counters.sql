-- Statement trigger for the copies in the link tables, and counters of events per link and day.

-- The copies in the link tables follow the events. One statement per table serves any number of events. EXCEPT finds
-- the changed events in linear time, with whatever plan is cached, and nothing else is done if there are none.
DROP TRIGGER event_links_follow ON events;
DROP FUNCTION copy_event_to_links();
CREATE FUNCTION copy_events_to_links() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT site_id, id, start_utc, status, hide_from_listings FROM new_rows
        EXCEPT SELECT site_id, id, start_utc, status, hide_from_listings FROM old_rows) THEN
        RETURN NULL;
    END IF;
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
    FOR EACH STATEMENT EXECUTE FUNCTION copy_events_to_links();
