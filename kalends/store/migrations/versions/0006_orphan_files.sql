-- Files without a record, and since when. A file is marked before its deletion: until it is deleted, or the mark has
-- expired, no record may refer to it.
CREATE TABLE spare_files (
    site_id   bigint NOT NULL REFERENCES sites (id),
    name      text NOT NULL,
    since     timestamptz NOT NULL,
    doomed_at timestamptz,
    PRIMARY KEY (site_id, name)
);

ALTER TABLE spare_files ENABLE ROW LEVEL SECURITY;
CREATE POLICY site_fence ON spare_files TO kalends_app
    USING (site_id = current_setting('kalends.site_id')::bigint)
    WITH CHECK (site_id = current_setting('kalends.site_id')::bigint);
GRANT SELECT, INSERT, UPDATE, DELETE ON spare_files TO kalends_app;
