-- The frame of the public pages: legal links, parent site, second accent, fonts and custom CSS.

ALTER TABLE sites
    ADD COLUMN imprint_url     text NOT NULL DEFAULT '',
    ADD COLUMN privacy_url     text NOT NULL DEFAULT '',
    ADD COLUMN parent_url      text NOT NULL DEFAULT '',
    -- Empty: the accent.
    ADD COLUMN second_accent   text NOT NULL DEFAULT '' CHECK (second_accent ~ '^(#[0-9a-f]{6})?$'),
    ADD COLUMN fonts           text NOT NULL DEFAULT 'serif'
                               CHECK (fonts IN ('serif', 'sans', 'classic', 'humanist', 'rounded')),
    -- Names the current version of the custom CSS in its URL. Empty: there is none.
    ADD COLUMN custom_css_hash text NOT NULL DEFAULT '';

-- The custom CSS of a site. It is not a column of `sites`, whose row every transaction reads.
CREATE TABLE site_styles (
    site_id bigint PRIMARY KEY REFERENCES sites ON DELETE CASCADE,
    css     text NOT NULL CHECK (octet_length(css) <= 16384)
);
ALTER TABLE site_styles ENABLE ROW LEVEL SECURITY;
CREATE POLICY site_fence ON site_styles TO kalends_app
    USING (site_id = current_setting('kalends.site_id')::bigint)
    WITH CHECK (site_id = current_setting('kalends.site_id')::bigint);
GRANT SELECT, INSERT, UPDATE, DELETE ON site_styles TO kalends_app;
