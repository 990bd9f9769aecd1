-- The rows of `site_changes` with the time of each change, and whether it hides an event from lists or protects it with
-- a password. One statement, hence one snapshot.

CREATE FUNCTION dated_changes(asked_site bigint, after_revision bigint, until_revision bigint, maximum integer)
RETURNS TABLE (
    last_revision bigint, revision bigint, kind text, record_id bigint, action text, was_public boolean,
    columns text[], old jsonb, new jsonb, present jsonb, changed_at timestamptz, hides boolean, protects boolean
)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT c.last_revision, c.revision, c.kind, c.record_id, c.action, c.was_public, c.columns, c.old, c.new, c.present,
        l.changed_at, coalesce(l.after -> 'hide_from_listings' = 'true', false), l.after ->> 'password_hash' IS NOT NULL
    FROM site_changes(asked_site, after_revision, until_revision, maximum) c
    LEFT JOIN changes l ON l.site_id = asked_site AND l.revision = c.revision
    ORDER BY c.revision
$$;

DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION dated_changes(bigint, bigint, bigint, integer) SET search_path = pg_catalog, %I, pg_temp',
        current_schema());
    REVOKE ALL ON FUNCTION dated_changes(bigint, bigint, bigint, integer) FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION dated_changes(bigint, bigint, bigint, integer) TO kalends_app;
END $$;
