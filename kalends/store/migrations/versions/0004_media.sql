-- The media library: descriptions, sources and files of images.

ALTER TABLE media
    -- `url` is the name of a stored file (its hash and extension), or the URL of an external one.
    ADD COLUMN author       bigint,
    ADD COLUMN title        text NOT NULL DEFAULT '' CHECK (length(title) <= 500),
    ADD COLUMN alt_text     text NOT NULL DEFAULT '' CHECK (length(alt_text) <= 2000),
    ADD COLUMN caption      text NOT NULL DEFAULT '' CHECK (length(caption) <= 10000),
    ADD COLUMN focus_x      double precision NOT NULL DEFAULT 0.5 CHECK (focus_x BETWEEN 0 AND 1),
    ADD COLUMN focus_y      double precision NOT NULL DEFAULT 0.5 CHECK (focus_y BETWEEN 0 AND 1),
    ADD COLUMN mime_type    text NOT NULL DEFAULT '',
    -- The hash of the file as uploaded, which identifies a repeated upload although the stored file is re-encoded.
    ADD COLUMN sent_hash    bytea,
    -- The URL that it was fetched from, with the validators of the response.
    ADD COLUMN source_url   text NOT NULL DEFAULT '',
    ADD COLUMN source_hash  bytea,
    ADD COLUMN source_etag  text NOT NULL DEFAULT '',
    ADD COLUMN source_date  text NOT NULL DEFAULT '',
    ADD COLUMN fetched_at   timestamptz,
    ADD COLUMN date_utc     timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN modified_utc timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN search_text  text NOT NULL DEFAULT '',
    ADD FOREIGN KEY (site_id, author) REFERENCES users (site_id, id);

-- A URL may exceed the maximum size of an index entry, so its hash is unique instead.
CREATE UNIQUE INDEX media_source ON media (site_id, source_hash) WHERE source_hash IS NOT NULL;
CREATE INDEX media_sent ON media (site_id, sent_hash) WHERE sent_hash IS NOT NULL;
CREATE INDEX media_list ON media (site_id, date_utc DESC, id DESC);
CREATE INDEX media_search ON media USING gin (site_id, search_text gin_trgm_ops);
CREATE INDEX venues_image ON venues (site_id, image_id) WHERE image_id IS NOT NULL;
CREATE INDEX organizers_image ON organizers (site_id, image_id) WHERE image_id IS NOT NULL;

-- The files of all images. A file without an image is deleted after a day.
CREATE TABLE media_files (
    site_id  bigint NOT NULL,
    name     text NOT NULL,
    media_id bigint NOT NULL,
    size     text NOT NULL,
    PRIMARY KEY (site_id, name, media_id, size),
    FOREIGN KEY (site_id, media_id) REFERENCES media (site_id, id) ON DELETE CASCADE
);
CREATE INDEX media_files_of ON media_files (site_id, media_id);

ALTER TABLE media_files ENABLE ROW LEVEL SECURITY;
CREATE POLICY site_fence ON media_files TO kalends_app
    USING (site_id = current_setting('kalends.site_id')::bigint)
    WITH CHECK (site_id = current_setting('kalends.site_id')::bigint);
GRANT SELECT, INSERT, UPDATE, DELETE ON media_files TO kalends_app;
