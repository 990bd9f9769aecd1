-- Each queue has its own slots in the worker, so that urgent jobs never wait for images or imports. In a queue, jobs
-- with a higher priority start first. Workers of the previous version run the jobs of all queues alike.
CREATE OR REPLACE FUNCTION enqueue_job(task text, arguments jsonb, at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
        CASE task WHEN 'make_sizes' THEN 'images' WHEN 'send_email' THEN 'email' WHEN 'plan_import' THEN 'background'
            WHEN 'apply_import' THEN 'background' ELSE 'default' END,
        task, CASE task WHEN 'publish' THEN 1 ELSE 0 END, NULL, NULL,
        arguments || jsonb_build_object('site_id', current_setting('kalends.site_id')::bigint),
        at)::procrastinate_job_to_defer_v1]);
END $$;

-- CREATE OR REPLACE keeps owner and grants, but not the settings of a function.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION enqueue_job(text, jsonb, timestamptz) SET search_path = pg_catalog, %I, pg_temp',
        current_schema());
END $$;

-- The jobs of earlier versions.
UPDATE procrastinate_jobs SET queue_name = CASE task_name WHEN 'make_sizes' THEN 'images' WHEN 'send_email' THEN 'email'
    ELSE 'background' END
WHERE task_name IN ('make_sizes', 'send_email', 'plan_import', 'apply_import');
UPDATE procrastinate_jobs SET priority = 1 WHERE task_name = 'publish';
