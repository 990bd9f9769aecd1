-- Sites with people without proposals. Blocked ones stay until the cutoff.
CREATE OR REPLACE FUNCTION sites_with_idle_submitters(cutoff timestamptz) RETURNS TABLE (site_id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT DISTINCT s.site_id FROM submitters s
    WHERE (s.blocked_at IS NULL OR s.last_seen_at < cutoff)
        AND NOT EXISTS (SELECT FROM proposals p WHERE p.site_id = s.site_id AND p.submitter_id = s.id)
        AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.site_id)
$$;

-- Emails about proposals use the queue of the other emails.
CREATE OR REPLACE FUNCTION enqueue_job(task text, arguments jsonb, at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
        CASE task WHEN 'make_sizes' THEN 'images' WHEN 'send_email' THEN 'email'
            WHEN 'send_proposal_email' THEN 'email' WHEN 'plan_import' THEN 'background'
            WHEN 'apply_import' THEN 'background' ELSE 'default' END,
        task, CASE task WHEN 'publish' THEN 1 ELSE 0 END, NULL, NULL,
        arguments || jsonb_build_object('site_id', current_setting('kalends.site_id')::bigint),
        at)::procrastinate_job_to_defer_v1]);
END $$;

-- Sites with a public form, and those of them without a base URL.
CREATE OR REPLACE FUNCTION count_open_sites(OUT open_sites bigint, OUT nameless_sites bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT count(*), count(*) FILTER (WHERE coalesce(s.base_url, '') = '') FROM sites s WHERE s.submissions
$$;

DO $$
DECLARE
    called regprocedure;
BEGIN
    FOREACH called IN ARRAY ARRAY['sites_with_idle_submitters(timestamptz)', 'count_open_sites()',
        'enqueue_job(text, jsonb, timestamptz)']::regprocedure[] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', called, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', called);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO kalends_app', called);
    END LOOP;
END $$;
