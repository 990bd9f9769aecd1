-- Sites whose change log has entries from before a time. Sites without such entries cost nothing.
CREATE OR REPLACE FUNCTION sites_with_old_changes(cutoff timestamptz) RETURNS TABLE (site_id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT DISTINCT c.site_id FROM changes c WHERE c.changed_at < cutoff
$$;

DO $$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION sites_with_old_changes(timestamptz) SET search_path = pg_catalog, %I, pg_temp', current_schema());
    -- The planner does not know the cutoff and would expect a third of all entries to be older.
    ALTER FUNCTION sites_with_old_changes(timestamptz) SET enable_seqscan = off;
    REVOKE ALL ON FUNCTION sites_with_old_changes(timestamptz) FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION sites_with_old_changes(timestamptz) TO kalends_app;
END $$;
