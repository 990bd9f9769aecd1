-- Heartbeat of workers, hosts of a site, IDs of sites that are never used again, and disabled accounts.

-- The server may not read the queue, which has jobs of all sites; the time of the last heartbeat discloses nothing.
CREATE FUNCTION worker_heartbeat() RETURNS timestamptz LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT max(w.last_heartbeat) FROM procrastinate_workers w
$$;

-- Hosts of the site of the transaction.
CREATE FUNCTION own_hosts() RETURNS TABLE (host text) LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT h.host FROM site_hosts h WHERE h.site_id = current_setting('kalends.site_id')::bigint ORDER BY h.host
$$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['worker_heartbeat()', 'own_hosts()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', name, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO kalends_app', name);
    END LOOP;
END $$;

-- Caches identify a site by its ID, so the ID of a removed site must not return.
CREATE SEQUENCE site_ids;
SELECT setval('site_ids', (SELECT max(id) FROM sites));
ALTER TABLE orphan_files DROP CONSTRAINT orphan_files_site_id_fkey,
    ADD CONSTRAINT orphan_files_site_id_fkey FOREIGN KEY (site_id) REFERENCES sites (id) ON DELETE CASCADE;
ALTER TABLE slug_redirects DROP CONSTRAINT slug_redirects_site_id_fkey,
    ADD CONSTRAINT slug_redirects_site_id_fkey FOREIGN KEY (site_id) REFERENCES sites (id) ON DELETE CASCADE;

-- A disabled account cannot sign in, but stays the author of its records.
ALTER TABLE users ADD COLUMN disabled_at timestamptz;
