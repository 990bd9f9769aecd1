-- Former public slugs, for redirects to the current URL of the record.
CREATE TABLE old_slugs (
    site_id   bigint NOT NULL REFERENCES sites (id),
    kind      text NOT NULL,
    slug      text NOT NULL,
    record_id bigint NOT NULL,
    PRIMARY KEY (site_id, kind, slug)
);

ALTER TABLE old_slugs ENABLE ROW LEVEL SECURITY;
CREATE POLICY site_fence ON old_slugs TO kalends_app
    USING (site_id = current_setting('kalends.site_id')::bigint)
    WITH CHECK (site_id = current_setting('kalends.site_id')::bigint);
GRANT SELECT, INSERT, UPDATE, DELETE ON old_slugs TO kalends_app;
