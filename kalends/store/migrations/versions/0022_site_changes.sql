-- Changes of a site after a revision, for the invalidation of caches.
--
-- One statement reads the current revision, the changes up to it (or up to `until_revision`), and the current times
-- and links of changed events, so all of them belong to the same snapshot. Texts are left out: they can be long, and
-- no cache tag depends on them. If there are no changes, or more than `maximum`, one row has the last revision only.

CREATE FUNCTION site_changes(asked_site bigint, after_revision bigint, until_revision bigint, maximum integer)
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
        FROM sites WHERE id = asked_site
    ) s
    LEFT JOIN changes c ON c.site_id = s.id AND c.revision > after_revision AND c.revision <= s.last
        AND s.last - after_revision <= maximum
    ORDER BY c.revision
$$;

DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION site_changes(bigint, bigint, bigint, integer) SET search_path = pg_catalog, %I, pg_temp',
        current_schema());
    REVOKE ALL ON FUNCTION site_changes(bigint, bigint, bigint, integer) FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION site_changes(bigint, bigint, bigint, integer) TO kalends_app;
END $$;
