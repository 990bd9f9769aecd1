-- The body of a record has changed because of something else, and nobody has edited it.
ALTER TABLE changes ADD COLUMN is_derived boolean NOT NULL DEFAULT false;

-- The action of such a change is `derived`, which touches no list. Earlier versions take it for an update.
CREATE OR REPLACE FUNCTION site_changes(asked_site bigint, after_revision bigint, until_revision bigint, maximum integer)
RETURNS TABLE (
    last_revision bigint, revision bigint, kind text, record_id bigint, action text, was_public boolean,
    columns text[], old jsonb, new jsonb, present jsonb
)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.last, c.revision, c.kind, c.record_id, CASE WHEN c.is_derived THEN 'derived' ELSE c.action END,
        c.was_public,
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
-- CREATE OR REPLACE keeps owner and grants, but not the settings of a function.
DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION site_changes(bigint, bigint, bigint, integer) SET search_path = pg_catalog, %I, pg_temp',
        current_schema());
END $$;
