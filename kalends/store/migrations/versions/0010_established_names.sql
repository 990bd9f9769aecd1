-- Established names for columns, tables and functions, in the schema and in the change log.
-- Indexes, generated columns, foreign keys, policies and grants follow a rename; texts of functions and the keys of
-- JSON values do not.

-- Posts and images ---------------------------------------------------------------------------

ALTER TABLE events RENAME COLUMN author TO author_id;
ALTER TABLE venues RENAME COLUMN author TO author_id;
ALTER TABLE organizers RENAME COLUMN author TO author_id;
ALTER TABLE media RENAME COLUMN author TO author_id;
ALTER TABLE events RENAME CONSTRAINT events_site_id_author_fkey TO events_site_id_author_id_fkey;
ALTER TABLE venues RENAME CONSTRAINT venues_site_id_author_fkey TO venues_site_id_author_id_fkey;
ALTER TABLE organizers RENAME CONSTRAINT organizers_site_id_author_fkey TO organizers_site_id_author_id_fkey;
ALTER TABLE media RENAME CONSTRAINT media_site_id_author_fkey TO media_site_id_author_id_fkey;

ALTER TABLE events RENAME COLUMN date_utc TO published_at;
ALTER TABLE venues RENAME COLUMN date_utc TO published_at;
ALTER TABLE organizers RENAME COLUMN date_utc TO published_at;
ALTER TABLE media RENAME COLUMN date_utc TO added_at;

ALTER TABLE events RENAME COLUMN span TO duration_class;
ALTER INDEX events_span RENAME TO events_duration_class;
ALTER TABLE events RENAME COLUMN months TO month_keys;

ALTER TABLE media RENAME COLUMN source_date TO source_last_modified;
ALTER TABLE media RENAME COLUMN sent_hash TO upload_sha256;
ALTER INDEX media_sent RENAME TO media_upload;

-- Files and slugs ----------------------------------------------------------------------------

ALTER TABLE spare_files RENAME TO orphan_files;
ALTER TABLE orphan_files RENAME COLUMN doomed_at TO deleting_since;
ALTER TABLE orphan_files RENAME CONSTRAINT spare_files_pkey TO orphan_files_pkey;
ALTER TABLE orphan_files RENAME CONSTRAINT spare_files_site_id_fkey TO orphan_files_site_id_fkey;

ALTER TABLE old_slugs RENAME TO slug_redirects;
ALTER TABLE slug_redirects RENAME CONSTRAINT old_slugs_pkey TO slug_redirects_pkey;
ALTER TABLE slug_redirects RENAME CONSTRAINT old_slugs_site_id_fkey TO slug_redirects_site_id_fkey;

-- Credentials --------------------------------------------------------------------------------

ALTER TABLE application_password_uses RENAME COLUMN at TO used_at;
ALTER TABLE application_password_uses RENAME COLUMN agent TO user_agent;
ALTER TABLE application_password_uses RENAME COLUMN address TO client_ip;
ALTER TABLE login_failures RENAME COLUMN at TO counted_at;

-- The change log -----------------------------------------------------------------------------

ALTER TABLE changes RENAME COLUMN at TO changed_at;

-- The log stores columns by name. History and restore read them, so old entries get the new names, too.
CREATE FUNCTION rename_logged_columns(columns jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT columns - 'author' - 'date_utc'
        || CASE WHEN columns ? 'author'
            THEN jsonb_build_object('author_id', columns -> 'author') ELSE '{}' END
        || CASE WHEN columns ? 'date_utc'
            THEN jsonb_build_object('published_at', columns -> 'date_utc') ELSE '{}' END
$$;
UPDATE changes SET before = rename_logged_columns(before), after = rename_logged_columns(after)
WHERE before ?| ARRAY['author', 'date_utc'] OR after ?| ARRAY['author', 'date_utc'];
DROP FUNCTION rename_logged_columns(jsonb);

-- Functions ----------------------------------------------------------------------------------
-- CREATE OR REPLACE keeps owner and grants, but not the search path: it is set again.

ALTER FUNCTION site_clocks(text[]) RENAME TO site_revisions;

CREATE OR REPLACE FUNCTION due_records(most integer) RETURNS TABLE (site_id bigint, kind text, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    (SELECT e.site_id, 'events', e.id FROM events e WHERE e.status = 'future' AND e.published_at <= now() LIMIT most)
    UNION ALL
    (SELECT v.site_id, 'venues', v.id FROM venues v WHERE v.status = 'future' AND v.published_at <= now() LIMIT most)
    UNION ALL
    (SELECT o.site_id, 'organizers', o.id FROM organizers o
     WHERE o.status = 'future' AND o.published_at <= now() LIMIT most)
$$;

CREATE OR REPLACE FUNCTION sites_with_old_changes(cutoff timestamptz) RETURNS TABLE (site_id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.id FROM sites s WHERE EXISTS (
        SELECT FROM changes c
        WHERE c.site_id = s.id AND c.revision = s.trimmed_revision + 1 AND c.changed_at < cutoff)
$$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['due_records(integer)', 'sites_with_old_changes(timestamptz)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', name, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO kalends_app', name);
    END LOOP;
END $$;
