-- The schema. Every table of a site has site_id first in its primary key, unique indexes and foreign keys, so that
-- links across sites are impossible and a site can be moved as a whole.

CREATE EXTENSION IF NOT EXISTS postgis;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE EXTENSION IF NOT EXISTS btree_gin;

-- `kalends migrate` inserts the declarations of kalends/store/migrations/compatibility.py.
CREATE TABLE schema_compatibility (
    revision    text PRIMARY KEY,
    oldest_code text NOT NULL
);

-- Sites ---------------------------------------------------------------------------------------

CREATE TABLE sites (
    id                bigint PRIMARY KEY,
    name              text NOT NULL DEFAULT 'Kalends',
    base_url          text,
    timezone          text NOT NULL DEFAULT 'UTC',
    language          text NOT NULL DEFAULT 'en',
    currency_symbol   text NOT NULL DEFAULT '$',
    currency_position text NOT NULL DEFAULT 'prefix' CHECK (currency_position IN ('prefix', 'postfix')),
    currency_code     text NOT NULL DEFAULT 'USD',
    per_page          smallint NOT NULL DEFAULT 12 CHECK (per_page BETWEEN 1 AND 50),
    -- Incremented with every change of a record.
    revision          bigint NOT NULL DEFAULT 0,
    last_post_id      bigint NOT NULL DEFAULT 0,
    last_term_id      bigint NOT NULL DEFAULT 0,
    last_user_id      bigint NOT NULL DEFAULT 0,
    -- The key of all keyed hashes of this site.
    secret            bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
    created_at        timestamptz NOT NULL DEFAULT now(),
    -- Changes up to this revision have been deleted; a client that is further behind needs a full sync.
    trimmed_revision  bigint NOT NULL DEFAULT 0,
    logo_url          text NOT NULL DEFAULT '',
    accent            text NOT NULL DEFAULT '#b3341e' CHECK (accent ~ '^#[0-9a-f]{6}$'),
    -- 1 is Monday, 7 is Sunday.
    first_weekday     smallint NOT NULL DEFAULT 1 CHECK (first_weekday BETWEEN 1 AND 7),
    default_view      text NOT NULL DEFAULT 'month' CHECK (default_view IN ('month', 'week', 'day', 'list', 'map')),
    imprint_url       text NOT NULL DEFAULT '',
    privacy_url       text NOT NULL DEFAULT '',
    parent_url        text NOT NULL DEFAULT '',
    -- Empty: the accent.
    second_accent     text NOT NULL DEFAULT '' CHECK (second_accent ~ '^(#[0-9a-f]{6})?$'),
    fonts             text NOT NULL DEFAULT 'serif'
                      CHECK (fonts IN ('serif', 'sans', 'classic', 'humanist', 'rounded')),
    -- Names the current version of the custom CSS in its URL. Empty: there is none.
    custom_css_hash   text NOT NULL DEFAULT '',
    -- The host of the site whose records, up to this ID, have kept their IDs here; empty: there was none.
    former_host       text NOT NULL DEFAULT '',
    former_last_id    bigint NOT NULL DEFAULT 0
);
INSERT INTO sites (id) VALUES (1);

-- Caches identify a site by its ID, so the ID of a removed site must not return.
CREATE SEQUENCE site_ids;
SELECT setval('site_ids', 1);

CREATE TABLE site_hosts (
    host    text PRIMARY KEY,
    site_id bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE
);

-- The custom CSS of a site. It is not a column of `sites`, whose row every transaction reads.
CREATE TABLE site_styles (
    site_id bigint PRIMARY KEY REFERENCES sites ON DELETE CASCADE,
    css     text NOT NULL CHECK (octet_length(css) <= 16384)
);

-- The name of this database in the directory of sites. Without a row there is no directory, and a single site serves
-- every host; with one, a host without a row in `site_hosts` is unknown.
CREATE TABLE cell (
    is_only_row boolean PRIMARY KEY DEFAULT true CHECK (is_only_row),
    name        text NOT NULL
);

-- Sites with rows in this database that another cell serves: they are being copied to here, or have moved away and are
-- being deleted. Nothing refers to `sites`, because the row of an arriving site comes later.
CREATE TABLE unserved_sites (
    site_id bigint PRIMARY KEY,
    state   text NOT NULL CHECK (state IN ('arriving', 'departed')),
    move_id uuid NOT NULL,
    since   timestamptz NOT NULL DEFAULT now(),
    -- Of a departed site: its hosts and unfinished jobs, which the other cell takes over. They are removed and stored
    -- here in the transaction that ends the service, so that none is lost or done by two cells.
    hosts   text[] NOT NULL DEFAULT '{}',
    jobs    jsonb NOT NULL DEFAULT '[]'
);

-- Accounts ------------------------------------------------------------------------------------

CREATE TABLE users (
    site_id           bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id                bigint NOT NULL,
    login             text NOT NULL CHECK (login <> '' AND length(login) <= 60),
    email             text NOT NULL DEFAULT '',
    display_name      text NOT NULL DEFAULT '',
    role              text NOT NULL
                      CHECK (role IN ('subscriber', 'contributor', 'author', 'editor', 'administrator')),
    password_hash     text NOT NULL DEFAULT '',
    created_at        timestamptz NOT NULL DEFAULT now(),
    -- A disabled account cannot sign in, but stays the author of its records.
    disabled_at       timestamptz,
    -- The language of the console; empty: the one that the browser prefers.
    language          text NOT NULL DEFAULT '',
    -- The last time the user signed in to the console; null: never.
    last_signed_in_at timestamptz,
    PRIMARY KEY (site_id, id)
);
CREATE UNIQUE INDEX users_login ON users (site_id, lower(login));
CREATE UNIQUE INDEX users_email ON users (site_id, lower(email)) WHERE email <> '';

CREATE TABLE application_passwords (
    site_id      bigint NOT NULL,
    id           uuid NOT NULL DEFAULT gen_random_uuid(),
    user_id      bigint NOT NULL,
    name         text NOT NULL,
    hash         bytea NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    read_only    boolean NOT NULL DEFAULT false,
    PRIMARY KEY (site_id, id),
    UNIQUE (site_id, user_id, name),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);

CREATE TABLE application_password_uses (
    site_id     bigint NOT NULL,
    password_id uuid NOT NULL,
    used_at     timestamptz NOT NULL,
    client_ip   text NOT NULL,
    user_agent  text NOT NULL,
    PRIMARY KEY (site_id, password_id, used_at, client_ip),
    FOREIGN KEY (site_id, password_id) REFERENCES application_passwords (site_id, id) ON DELETE CASCADE
);

-- Failed logins by account and by IP address: the number that is not yet forgiven, and its time.
CREATE TABLE login_failures (
    site_id    bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    subject    text NOT NULL,
    count      double precision NOT NULL,
    counted_at timestamptz NOT NULL,
    PRIMARY KEY (site_id, subject)
);
CREATE INDEX login_failures_age ON login_failures (site_id, counted_at);

-- A browser in which a user has signed in. Only the hash of its token is stored, so a copy of the database contains
-- nothing that could be used to sign in.
CREATE TABLE sessions (
    site_id            bigint NOT NULL,
    token_hash         bytea NOT NULL,
    user_id            bigint NOT NULL,
    created_at         timestamptz NOT NULL,
    -- Written at most every few minutes.
    seen_at            timestamptz NOT NULL,
    -- The last time the user proved their identity; changes of credentials require a recent one.
    reauthenticated_at timestamptz NOT NULL,
    client_ip          text NOT NULL,
    user_agent         text NOT NULL,
    PRIMARY KEY (site_id, token_hash),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);
CREATE INDEX sessions_of_user ON sessions (site_id, user_id);

CREATE TABLE passkeys (
    site_id       bigint NOT NULL,
    credential_id bytea NOT NULL,
    user_id       bigint NOT NULL,
    public_key    bytea NOT NULL,
    sign_count    bigint NOT NULL,
    name          text NOT NULL,
    created_at    timestamptz NOT NULL,
    last_used_at  timestamptz,
    PRIMARY KEY (site_id, credential_id),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);
CREATE INDEX passkeys_of_user ON passkeys (site_id, user_id);

-- Links that sign in, invite or reset a password, and challenges of passkeys that were used. Each works once.
CREATE TABLE one_time_tokens (
    site_id    bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    token_hash bytea NOT NULL,
    purpose    text NOT NULL CHECK (purpose IN ('sign_in', 'invite', 'reset', 'used_challenge')),
    user_id    bigint,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (site_id, token_hash),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);
CREATE INDEX one_time_tokens_of_user ON one_time_tokens (site_id, user_id);

-- Forms that a user has not saved yet. They raise no revision.
CREATE TABLE drafts (
    site_id       bigint NOT NULL,
    user_id       bigint NOT NULL,
    kind          text NOT NULL,
    -- The ID of the record, or a key that the browser has generated for a new record.
    draft_key     text NOT NULL CHECK (length(draft_key) BETWEEN 1 AND 64),
    base_revision bigint,
    fields        jsonb NOT NULL,
    saved_at      timestamptz NOT NULL,
    PRIMARY KEY (site_id, user_id, kind, draft_key),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);

-- Filters of the tables of the console, by the name that a user gave them.
CREATE TABLE saved_filters (
    site_id bigint NOT NULL,
    user_id bigint NOT NULL,
    name    text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    query   text NOT NULL CHECK (length(query) <= 2000),
    PRIMARY KEY (site_id, user_id, name),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);

-- The number of records that a user has created on the last day with writes, in UTC.
CREATE TABLE daily_records (
    site_id bigint NOT NULL,
    user_id bigint NOT NULL,
    day     date NOT NULL,
    count   bigint NOT NULL,
    PRIMARY KEY (site_id, user_id),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);

-- Images --------------------------------------------------------------------------------------

CREATE TABLE media (
    site_id              bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id                   bigint NOT NULL,
    revision             bigint NOT NULL,
    -- The name of a stored file (its hash and extension), or the URL of an external one.
    url                  text NOT NULL,
    extension            text NOT NULL,
    width                integer NOT NULL,
    height               integer NOT NULL,
    filesize             bigint NOT NULL,
    sizes                jsonb NOT NULL DEFAULT '{}',
    author_id            bigint,
    title                text NOT NULL DEFAULT '' CHECK (length(title) <= 500),
    alt_text             text NOT NULL DEFAULT '' CHECK (length(alt_text) <= 2000),
    caption              text NOT NULL DEFAULT '' CHECK (length(caption) <= 10000),
    focus_x              double precision NOT NULL DEFAULT 0.5 CHECK (focus_x BETWEEN 0 AND 1),
    focus_y              double precision NOT NULL DEFAULT 0.5 CHECK (focus_y BETWEEN 0 AND 1),
    mime_type            text NOT NULL DEFAULT '',
    -- The hash of the file as uploaded, which identifies a repeated upload although the stored file is re-encoded.
    upload_sha256        bytea,
    -- The URL that it was fetched from, with the validators of the response.
    source_url           text NOT NULL DEFAULT '',
    source_hash          bytea,
    source_etag          text NOT NULL DEFAULT '',
    source_last_modified text NOT NULL DEFAULT '',
    fetched_at           timestamptz,
    added_at             timestamptz NOT NULL DEFAULT now(),
    modified_utc         timestamptz NOT NULL DEFAULT now(),
    search_text          text NOT NULL DEFAULT '',
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, author_id) REFERENCES users (site_id, id)
);
CREATE INDEX media_url ON media (site_id, url);
-- A URL may exceed the maximum size of an index entry, so its hash is unique instead.
CREATE UNIQUE INDEX media_source ON media (site_id, source_hash) WHERE source_hash IS NOT NULL;
CREATE INDEX media_upload ON media (site_id, upload_sha256) WHERE upload_sha256 IS NOT NULL;
CREATE INDEX media_list ON media (site_id, added_at DESC, id DESC);
CREATE INDEX media_search ON media USING gin (site_id, search_text gin_trgm_ops);

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

-- Files without a record, and since when. A file is marked before its deletion: until it is deleted, or the mark has
-- expired, no record may refer to it.
CREATE TABLE orphan_files (
    site_id        bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    name           text NOT NULL,
    since          timestamptz NOT NULL,
    deleting_since timestamptz,
    PRIMARY KEY (site_id, name)
);

-- Descriptions refer to images of the media library as `media:ID`. Null: they have none.
CREATE FUNCTION inline_images(html text) RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN html LIKE '%src="media:%' THEN
        (SELECT array_agg(DISTINCT m[1]::bigint)
            FROM regexp_matches(html, 'src="media:([1-9][0-9]{0,15})"', 'g') AS m) END
$$;

-- Terms ---------------------------------------------------------------------------------------

CREATE TABLE categories (
    site_id     bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id          bigint NOT NULL,
    revision    bigint NOT NULL,
    parent      bigint,
    name        text NOT NULL CHECK (length(name) <= 200),
    name_folded text NOT NULL,
    slug        text NOT NULL CHECK (slug <> '' AND length(slug) <= 200),
    description text NOT NULL DEFAULT '',
    -- Number of published events with this term, updated by triggers.
    count       bigint NOT NULL DEFAULT 0 CHECK (count >= 0),
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, parent) REFERENCES categories (site_id, id),
    CHECK (parent <> id)
);
CREATE UNIQUE INDEX categories_slug ON categories (site_id, slug);
CREATE UNIQUE INDEX categories_revision ON categories (site_id, revision);
CREATE INDEX categories_name ON categories (site_id, name_folded, id);
CREATE INDEX categories_parent ON categories (site_id, parent);
CREATE INDEX categories_search ON categories USING gin (site_id, name_folded gin_trgm_ops, slug gin_trgm_ops);

CREATE TABLE tags (
    site_id     bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id          bigint NOT NULL,
    revision    bigint NOT NULL,
    name        text NOT NULL CHECK (length(name) <= 200),
    name_folded text NOT NULL,
    slug        text NOT NULL CHECK (slug <> '' AND length(slug) <= 200),
    description text NOT NULL DEFAULT '',
    count       bigint NOT NULL DEFAULT 0 CHECK (count >= 0),
    PRIMARY KEY (site_id, id)
);
CREATE UNIQUE INDEX tags_slug ON tags (site_id, slug);
CREATE UNIQUE INDEX tags_revision ON tags (site_id, revision);
CREATE INDEX tags_name ON tags (site_id, name_folded, id);
CREATE INDEX tags_search ON tags USING gin (site_id, name_folded gin_trgm_ops, slug gin_trgm_ops);

-- Venues and organizers -----------------------------------------------------------------------

CREATE TABLE venues (
    site_id          bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id               bigint NOT NULL,
    revision         bigint NOT NULL,
    author_id        bigint NOT NULL,
    status           text NOT NULL CHECK (status IN ('publish', 'draft', 'pending', 'private', 'future', 'trash')),
    -- The status before the record was trashed, for restore.
    trashed_status   text NOT NULL DEFAULT '',
    trashed_at       timestamptz,
    slug             text NOT NULL DEFAULT '' CHECK (length(slug) <= 220),
    published_at     timestamptz NOT NULL,
    modified_utc     timestamptz NOT NULL,
    title            text NOT NULL CHECK (length(title) <= 10000),
    description      text NOT NULL DEFAULT '' CHECK (length(description) <= 300000),
    address          text NOT NULL DEFAULT '',
    city             text NOT NULL DEFAULT '',
    country          text NOT NULL DEFAULT '',
    province         text NOT NULL DEFAULT '',
    state            text NOT NULL DEFAULT '',
    zip              text NOT NULL DEFAULT '',
    phone            text NOT NULL DEFAULT '',
    stateprovince    text NOT NULL DEFAULT '',
    website          text NOT NULL DEFAULT '',
    show_map         boolean NOT NULL DEFAULT true,
    show_map_link    boolean NOT NULL DEFAULT true,
    image_id         bigint,
    geo_lat          double precision CHECK (geo_lat BETWEEN -90 AND 90),
    geo_lng          double precision CHECK (geo_lng BETWEEN -180 AND 180),
    location         geography(Point, 4326) GENERATED ALWAYS AS
                     (ST_SetSRID(ST_MakePoint(geo_lng, geo_lat), 4326)::geography) STORED,
    search_text      text NOT NULL DEFAULT '',
    -- The revision of the last change of place or status. The SEQUENCE of an event in a feed is the maximum of its own
    -- value and those of its venues, so it never decreases.
    sequence         bigint NOT NULL DEFAULT 0,
    -- Whether `geoloc_known` of the venue's events is outdated; lists read the links until the worker has updated it.
    geoloc_pending   boolean NOT NULL DEFAULT false,
    inline_image_ids bigint[] GENERATED ALWAYS AS (inline_images(description)) STORED,
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, author_id) REFERENCES users (site_id, id),
    FOREIGN KEY (site_id, image_id) REFERENCES media (site_id, id),
    CHECK ((geo_lat IS NULL) = (geo_lng IS NULL))
);
CREATE UNIQUE INDEX venues_slug ON venues (site_id, slug) WHERE slug <> '';
CREATE UNIQUE INDEX venues_revision ON venues (site_id, revision);
CREATE INDEX venues_list ON venues (site_id, published_at DESC, id DESC) INCLUDE (status);
CREATE INDEX venues_title ON venues (site_id, title) WHERE length(title) < 500;
CREATE INDEX venues_search ON venues USING gin (site_id, search_text gin_trgm_ops);
CREATE INDEX venues_location ON venues USING gist (site_id, location);
CREATE INDEX venues_image ON venues (site_id, image_id) WHERE image_id IS NOT NULL;
CREATE INDEX venues_inline_images ON venues (site_id) WHERE inline_image_ids IS NOT NULL;
CREATE INDEX venues_geoloc_pending ON venues (site_id, id) WHERE geoloc_pending;
-- For the jobs of all sites.
CREATE INDEX venues_due ON venues (published_at) WHERE status = 'future';
CREATE INDEX venues_trashed ON venues (trashed_at) WHERE status = 'trash';

CREATE TABLE organizers (
    site_id          bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id               bigint NOT NULL,
    revision         bigint NOT NULL,
    author_id        bigint NOT NULL,
    status           text NOT NULL CHECK (status IN ('publish', 'draft', 'pending', 'private', 'future', 'trash')),
    trashed_status   text NOT NULL DEFAULT '',
    trashed_at       timestamptz,
    slug             text NOT NULL DEFAULT '' CHECK (length(slug) <= 220),
    published_at     timestamptz NOT NULL,
    modified_utc     timestamptz NOT NULL,
    title            text NOT NULL CHECK (length(title) <= 10000),
    description      text NOT NULL DEFAULT '' CHECK (length(description) <= 300000),
    phone            text NOT NULL DEFAULT '',
    website          text NOT NULL DEFAULT '',
    email            text NOT NULL DEFAULT '',
    image_id         bigint,
    search_text      text NOT NULL DEFAULT '',
    inline_image_ids bigint[] GENERATED ALWAYS AS (inline_images(description)) STORED,
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, author_id) REFERENCES users (site_id, id),
    FOREIGN KEY (site_id, image_id) REFERENCES media (site_id, id)
);
CREATE UNIQUE INDEX organizers_slug ON organizers (site_id, slug) WHERE slug <> '';
CREATE UNIQUE INDEX organizers_revision ON organizers (site_id, revision);
CREATE INDEX organizers_list ON organizers (site_id, published_at DESC, id DESC) INCLUDE (status);
CREATE INDEX organizers_title ON organizers (site_id, title) WHERE length(title) < 500;
CREATE INDEX organizers_search ON organizers USING gin (site_id, search_text gin_trgm_ops);
CREATE INDEX organizers_image ON organizers (site_id, image_id) WHERE image_id IS NOT NULL;
CREATE INDEX organizers_inline_images ON organizers (site_id) WHERE inline_image_ids IS NOT NULL;
-- For the jobs of all sites.
CREATE INDEX organizers_due ON organizers (published_at) WHERE status = 'future';
CREATE INDEX organizers_trashed ON organizers (trashed_at) WHERE status = 'trash';

-- Series --------------------------------------------------------------------------------------

-- An occurrence is an ordinary event with a series and a slot.
CREATE TABLE series (
    site_id            bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    -- From the same counter as the IDs of events.
    id                 bigint NOT NULL,
    uid                text NOT NULL,
    revision           bigint NOT NULL,
    -- The revision of the last change of times, place or status, for calendar feeds.
    sequence           bigint NOT NULL DEFAULT 0,
    author_id          bigint NOT NULL,
    status             text NOT NULL CHECK (status IN ('publish', 'draft', 'pending', 'private', 'future', 'trash')),
    trashed_status     text NOT NULL DEFAULT '',
    trashed_at         timestamptz,
    slug               text NOT NULL DEFAULT '' CHECK (length(slug) <= 220),
    published_at       timestamptz NOT NULL,
    modified_utc       timestamptz NOT NULL,
    -- The rules, one after the other: [{"uid", "rule", "start", "end", "timezone", "all_day"}]. `start` and `end` are
    -- the local times of the first date. An empty rule has that date only.
    parts              jsonb NOT NULL CHECK (jsonb_array_length(parts) BETWEEN 1 AND 100),
    -- The columns of the events that do not depend on the date, and the IDs of their linked records.
    template           jsonb NOT NULL,
    -- Later content: [{"from", "set"}], in the order of `from`.
    content_changes    jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_array_length(content_changes) <= 100),
    -- Slots that no rule gives, and skipped slots.
    added              timestamp[] NOT NULL DEFAULT '{}' CHECK (cardinality(added) <= 500),
    removed            timestamp[] NOT NULL DEFAULT '{}' CHECK (cardinality(removed) <= 1000),
    -- Copies from the template, for lists and for the usage of images.
    title              text NOT NULL CHECK (length(title) <= 10000),
    description        text NOT NULL DEFAULT '' CHECK (length(description) <= 300000),
    image_id           bigint,
    hide_from_listings boolean NOT NULL
                       GENERATED ALWAYS AS (coalesce((template ->> 'hide_from_listings')::boolean, false)) STORED,
    -- All dates that start before this instant have been created; null: all dates of the series.
    created_until      timestamptz,
    -- The key of an imported series in its source.
    source             text,
    source_uid         text,
    inline_image_ids   bigint[] GENERATED ALWAYS AS (inline_images(description)) STORED,
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, author_id) REFERENCES users (site_id, id),
    FOREIGN KEY (site_id, image_id) REFERENCES media (site_id, id)
);
CREATE UNIQUE INDEX series_slug ON series (site_id, slug) WHERE slug <> '';
CREATE UNIQUE INDEX series_uid ON series (site_id, uid);
CREATE UNIQUE INDEX series_revision ON series (site_id, revision);
CREATE UNIQUE INDEX series_source ON series (site_id, source, source_uid) WHERE source_uid IS NOT NULL;
CREATE INDEX series_image ON series (site_id, image_id) WHERE image_id IS NOT NULL;
CREATE INDEX series_inline_images ON series (site_id) WHERE inline_image_ids IS NOT NULL;
-- For the jobs of all sites: series to extend, to publish, and old ones in the trash.
CREATE INDEX series_incomplete ON series (created_until) WHERE created_until IS NOT NULL AND status <> 'trash';
CREATE INDEX series_scheduled ON series (published_at) WHERE status = 'future';
CREATE INDEX series_trashed ON series (trashed_at) WHERE status = 'trash';

-- Events --------------------------------------------------------------------------------------

-- Keys of the month of an instant and of the 10, 100, … months around it, so that a few keys cover any period.
CREATE FUNCTION month_keys(moment timestamptz) RETURNS int[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT ARRAY[m, 1000000 + m / 10, 2000000 + m / 100, 3000000 + m / 1000, 4000000 + m / 10000]
    FROM (SELECT (12 * extract(year FROM moment AT TIME ZONE 'UTC')
        + extract(month FROM moment AT TIME ZONE 'UTC') - 1)::int AS m) AS month
$$;

CREATE TABLE events (
    site_id            bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id                 bigint NOT NULL,
    -- Calendars that move in keep their UIDs, which are not UUIDs.
    uid                text NOT NULL CHECK (length(uid) BETWEEN 1 AND 255),
    revision           bigint NOT NULL,
    author_id          bigint NOT NULL,
    status             text NOT NULL CHECK (status IN ('publish', 'draft', 'pending', 'private', 'future', 'trash')),
    trashed_status     text NOT NULL DEFAULT '',
    trashed_at         timestamptz,
    slug               text NOT NULL DEFAULT '' CHECK (length(slug) <= 220),
    published_at       timestamptz NOT NULL,
    modified_utc       timestamptz NOT NULL,
    title              text NOT NULL CHECK (length(title) <= 10000),
    description        text NOT NULL DEFAULT '' CHECK (length(description) <= 300000),
    excerpt            text NOT NULL DEFAULT '' CHECK (length(excerpt) <= 100000),
    -- The author's input. Only the application computes the instants from it.
    timezone           text NOT NULL,
    all_day            boolean NOT NULL DEFAULT false,
    start_local        timestamp NOT NULL,
    end_local          timestamp NOT NULL,
    start_fold         smallint NOT NULL DEFAULT 0,
    end_fold           smallint NOT NULL DEFAULT 0,
    start_utc          timestamptz NOT NULL,
    end_utc            timestamptz NOT NULL,
    -- 0 below an hour, then doubling. An event of class n that runs at an instant began less than 2^n hours before it,
    -- so running events are found without reading all past events.
    duration_class     smallint NOT NULL GENERATED ALWAYS AS (
                           width_bucket(extract(epoch FROM end_utc - start_utc), ARRAY[
                               3600, 7200, 14400, 28800, 57600, 115200, 230400, 460800, 921600, 1843200,
                               3686400, 7372800, 14745600, 29491200, 58982400, 117964800, 235929600,
                               471859200, 943718400, 1887436800, 3774873600, 7549747200, 15099494400,
                               30198988800, 60397977600, 120795955200, 241591910400]::numeric[])) STORED,
    -- The start, for the index of words, so that a search does not read past events.
    month_keys         int[] NOT NULL GENERATED ALWAYS AS (month_keys(start_utc)) STORED,
    cost               text NOT NULL DEFAULT '',
    website            text NOT NULL DEFAULT '',
    ticket_url         text NOT NULL DEFAULT '',
    image_id           bigint,
    show_map           boolean NOT NULL DEFAULT false,
    show_map_link      boolean NOT NULL DEFAULT false,
    hide_from_listings boolean NOT NULL DEFAULT false,
    sticky             boolean NOT NULL DEFAULT false,
    featured           boolean NOT NULL DEFAULT false,
    password_hash      bytea,
    listed             boolean NOT NULL GENERATED ALWAYS AS
                       (status = 'publish' AND NOT hide_from_listings) STORED,
    search_text        text NOT NULL DEFAULT '',
    -- The revision of the last change of time, place or status.
    sequence           bigint NOT NULL DEFAULT 0,
    -- When an event stopped being public; null while it is public, if it never was, or if it was changed since.
    withdrawn_at       timestamptz,
    -- Whether a published venue of the event has coordinates (the filter `geoloc`), updated by triggers.
    geoloc_known       boolean NOT NULL DEFAULT false,
    -- Whether the event takes place as announced. Unlike `status`, it does not affect who sees the event.
    event_status       text NOT NULL DEFAULT 'scheduled'
                       CHECK (event_status IN ('scheduled', 'cancelled', 'postponed', 'moved_online', 'sold_out')),
    status_reason      text NOT NULL DEFAULT '' CHECK (length(status_reason) <= 2000),
    online_url         text NOT NULL DEFAULT '',
    -- Null: the site's currency.
    currency_symbol    text CHECK (length(currency_symbol) <= 16),
    currency_code      text CHECK (length(currency_code) <= 3),
    currency_position  text CHECK (currency_position IN ('prefix', 'postfix')),
    series_id          bigint,
    -- The local time that a rule gives the occurrence: its identity in the series. Moving one date does not change it.
    slot               timestamp,
    -- The fields that differ from the series, by their parameters; start, end, time zone and `all_day` are `times`.
    -- Null: none.
    own_fields         text[],
    -- The ID of the event in the feeds of its former site; null: the UID is used.
    feed_guid          text CHECK (length(feed_guid) BETWEEN 1 AND 2000),
    inline_image_ids   bigint[] GENERATED ALWAYS AS (inline_images(description || excerpt)) STORED,
    -- Whether the cost means free; `core/cost.py` has the words, and every write computes the column.
    is_free            boolean NOT NULL DEFAULT false,
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, author_id) REFERENCES users (site_id, id),
    FOREIGN KEY (site_id, image_id) REFERENCES media (site_id, id),
    FOREIGN KEY (site_id, series_id) REFERENCES series (site_id, id),
    -- Deferred, because a shift of a series moves each date to the slot of the next one.
    CONSTRAINT events_series_slot EXCLUDE USING btree (site_id WITH =, series_id WITH =, slot WITH =)
        WHERE (series_id IS NOT NULL) DEFERRABLE INITIALLY DEFERRED,
    CHECK (end_utc >= start_utc)
);

-- Single events.
CREATE UNIQUE INDEX events_slug ON events (site_id, slug) WHERE slug <> '';
CREATE UNIQUE INDEX events_uid ON events (site_id, uid);
CREATE UNIQUE INDEX events_revision ON events (site_id, revision);
CREATE INDEX events_series ON events (site_id, series_id, start_utc, id) INCLUDE (status) WHERE series_id IS NOT NULL;
-- Lists by start.
CREATE INDEX events_list ON events (site_id, start_utc, published_at, id) INCLUDE (end_utc)
    WHERE status = 'publish' AND NOT hide_from_listings;
CREATE INDEX events_single ON events (site_id, start_utc, published_at, id) INCLUDE (end_utc)
    WHERE status = 'publish' AND NOT hide_from_listings AND (series_id IS NULL OR password_hash IS NOT NULL);
CREATE INDEX events_all ON events (site_id, start_utc, published_at, id) INCLUDE (end_utc, status)
    WHERE NOT hide_from_listings;
CREATE INDEX events_drafts ON events (site_id, start_utc, published_at, id) INCLUDE (end_utc, status)
    WHERE status <> 'publish' AND NOT hide_from_listings;
CREATE INDEX events_duration_class ON events (site_id, duration_class, start_utc)
    INCLUDE (end_utc, status, published_at, id) WHERE NOT hide_from_listings;
CREATE INDEX events_by_author ON events (site_id, author_id, start_utc);
CREATE INDEX events_hidden ON events (site_id, start_utc) WHERE hide_from_listings;
-- Other orders, and filters.
CREATE INDEX events_end ON events (site_id, end_utc) INCLUDE (status) WHERE NOT hide_from_listings;
CREATE INDEX events_published ON events (site_id, published_at, id)
    WHERE status = 'publish' AND NOT hide_from_listings;
CREATE INDEX events_search ON events USING gin (site_id, month_keys, search_text gin_trgm_ops);
CREATE INDEX events_featured ON events (site_id, start_utc)
    WHERE status = 'publish' AND NOT hide_from_listings AND featured;
CREATE INDEX events_ticketed ON events (site_id, start_utc)
    WHERE status = 'publish' AND NOT hide_from_listings AND ticket_url <> '';
CREATE INDEX events_free ON events (site_id, start_utc) WHERE status = 'publish' AND NOT hide_from_listings AND is_free;
CREATE INDEX events_geoloc ON events (site_id, start_utc, published_at, id) INCLUDE (end_utc, password_hash)
    WHERE status = 'publish' AND NOT hide_from_listings AND geoloc_known;
CREATE INDEX events_changed_state ON events (site_id, event_status, start_utc) WHERE event_status <> 'scheduled';
-- The rest.
CREATE INDEX events_password ON events (site_id, password_hash) WHERE password_hash IS NOT NULL;
CREATE INDEX events_withdrawn ON events (site_id, withdrawn_at) WHERE withdrawn_at IS NOT NULL;
CREATE INDEX events_image ON events (site_id, image_id) WHERE image_id IS NOT NULL;
CREATE INDEX events_inline_images ON events (site_id) WHERE inline_image_ids IS NOT NULL;
CREATE INDEX events_due ON events (published_at) WHERE status = 'future';
CREATE INDEX events_trashed ON events (trashed_at) WHERE status = 'trash';

COMMENT ON INDEX events_pkey IS 'one event by ID; targets of foreign keys';
COMMENT ON INDEX events_slug IS 'one event by slug; free slugs of new events';
COMMENT ON INDEX events_uid IS 'events of imports and feeds by UID';
COMMENT ON INDEX events_revision IS 'events changed since a revision';
COMMENT ON INDEX events_list IS 'public lists by start: all events';
COMMENT ON INDEX events_single IS 'public lists with the first date of each series: the other events';
COMMENT ON INDEX events_all IS 'lists of editors by start: all statuses; possible duplicates on a day';
COMMENT ON INDEX events_drafts IS 'lists of editors by start: all statuses but publish';
COMMENT ON INDEX events_hidden IS 'console: events that are hidden from lists';
COMMENT ON INDEX events_by_author IS 'console and lists: the events of an author';
COMMENT ON INDEX events_end IS 'lists limited or ordered by end';
COMMENT ON INDEX events_duration_class IS 'lists by start: events that are still running';
COMMENT ON INDEX events_published IS 'lists ordered by date of publication, such as wp/v2/tribe_events';
COMMENT ON INDEX events_search IS 'filter search, by month';
COMMENT ON INDEX events_featured IS 'filter featured';
COMMENT ON INDEX events_ticketed IS 'filter ticketed';
COMMENT ON INDEX events_free IS 'filter free';
COMMENT ON INDEX events_geoloc IS 'filter geoloc';
COMMENT ON INDEX events_changed_state IS 'filter event_status: all but scheduled';
COMMENT ON INDEX events_password IS 'whether a password unlocks any event';
COMMENT ON INDEX events_withdrawn IS 'feeds: events withdrawn lately';
COMMENT ON INDEX events_series IS 'the dates of a series; the neighbours of a date';
COMMENT ON INDEX events_series_slot IS 'the date of a series by its slot; no slot twice';
COMMENT ON INDEX events_image IS 'events that show an image';
COMMENT ON INDEX events_inline_images IS 'events with images in their texts';
COMMENT ON INDEX events_due IS 'worker: events to publish, of all sites';
COMMENT ON INDEX events_trashed IS 'worker: old events in the trash, of all sites';

-- Links ---------------------------------------------------------------------------------------
-- start_utc, listed and published are copies of the columns of the event, so that one index finds the upcoming
-- events of a venue, and whether it has published ones.

CREATE TABLE event_venues (
    site_id   bigint NOT NULL,
    event_id  bigint NOT NULL,
    venue_id  bigint NOT NULL,
    position  smallint NOT NULL,
    start_utc timestamptz NOT NULL,
    listed    boolean NOT NULL,
    published boolean NOT NULL,
    PRIMARY KEY (site_id, event_id, venue_id),
    FOREIGN KEY (site_id, event_id) REFERENCES events (site_id, id) ON DELETE CASCADE,
    FOREIGN KEY (site_id, venue_id) REFERENCES venues (site_id, id) ON DELETE CASCADE
);
CREATE INDEX event_venues_by_venue ON event_venues (site_id, venue_id, start_utc)
    INCLUDE (event_id, listed, published);

CREATE TABLE event_organizers (
    site_id      bigint NOT NULL,
    event_id     bigint NOT NULL,
    organizer_id bigint NOT NULL,
    position     smallint NOT NULL,
    start_utc    timestamptz NOT NULL,
    listed       boolean NOT NULL,
    published    boolean NOT NULL,
    PRIMARY KEY (site_id, event_id, organizer_id),
    FOREIGN KEY (site_id, event_id) REFERENCES events (site_id, id) ON DELETE CASCADE,
    FOREIGN KEY (site_id, organizer_id) REFERENCES organizers (site_id, id) ON DELETE CASCADE
);
CREATE INDEX event_organizers_by_organizer ON event_organizers (site_id, organizer_id, start_utc)
    INCLUDE (event_id, listed, published);

CREATE TABLE event_categories (
    site_id     bigint NOT NULL,
    event_id    bigint NOT NULL,
    category_id bigint NOT NULL,
    position    smallint NOT NULL,
    start_utc   timestamptz NOT NULL,
    listed      boolean NOT NULL,
    published   boolean NOT NULL,
    PRIMARY KEY (site_id, event_id, category_id),
    FOREIGN KEY (site_id, event_id) REFERENCES events (site_id, id) ON DELETE CASCADE,
    FOREIGN KEY (site_id, category_id) REFERENCES categories (site_id, id) ON DELETE CASCADE
);
CREATE INDEX event_categories_by_category ON event_categories (site_id, category_id, start_utc)
    INCLUDE (event_id, listed, published);

CREATE TABLE event_tags (
    site_id   bigint NOT NULL,
    event_id  bigint NOT NULL,
    tag_id    bigint NOT NULL,
    position  smallint NOT NULL,
    start_utc timestamptz NOT NULL,
    listed    boolean NOT NULL,
    published boolean NOT NULL,
    PRIMARY KEY (site_id, event_id, tag_id),
    FOREIGN KEY (site_id, event_id) REFERENCES events (site_id, id) ON DELETE CASCADE,
    FOREIGN KEY (site_id, tag_id) REFERENCES tags (site_id, id) ON DELETE CASCADE
);
CREATE INDEX event_tags_by_tag ON event_tags (site_id, tag_id, start_utc)
    INCLUDE (event_id, listed, published);

-- Counters of events --------------------------------------------------------------------------
-- The statements of the triggers are static, so that their plans are cached; EXECUTE would plan them again for every
-- write. A session may plan a statement for many rows and use the plan for one, so only nested loops over indexes are
-- permitted, which suit both.

-- The numbers of events, except hidden ones, that start and end on each UTC day: the total of a list is a sum over
-- days instead of a scan of events.
CREATE TABLE event_days (
    site_id bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    status  text NOT NULL,
    day     date NOT NULL,
    starts  bigint NOT NULL,
    ends    bigint NOT NULL,
    PRIMARY KEY (site_id, status, day)
);

-- The numbers of events, except hidden ones, that start on each UTC day, per venue (kind v), organizer (o),
-- category (c) and tag (t): the total of a list with one such filter is a sum over days. Protected events, which such
-- a filter finds only for some callers, are counted in both columns.
CREATE TABLE link_days (
    site_id   bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    record_id bigint NOT NULL,
    starts    integer NOT NULL,
    protected integer NOT NULL,
    day       date NOT NULL,
    kind      "char" NOT NULL,
    status    text NOT NULL,
    PRIMARY KEY (site_id, kind, record_id, status, day)
);

CREATE FUNCTION count_inserted_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO event_days AS d (site_id, status, day, starts, ends)
    SELECT n.site_id, n.status, v.day, sum(v.starts), sum(v.ends)
    FROM new_rows n
    CROSS JOIN LATERAL (VALUES
        ((n.start_utc AT TIME ZONE 'UTC')::date, 1, 0),
        ((n.end_utc AT TIME ZONE 'UTC')::date, 0, 1)) AS v (day, starts, ends)
    WHERE NOT n.hide_from_listings
    GROUP BY n.site_id, n.status, v.day
    ON CONFLICT (site_id, status, day)
    DO UPDATE SET starts = d.starts + excluded.starts, ends = d.ends + excluded.ends;
    RETURN NULL;
END $$;
CREATE TRIGGER event_days_insert AFTER INSERT ON events
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION count_inserted_events();

-- Numbers become smaller by UPDATE: nothing is inserted for a site that is being deleted.
CREATE FUNCTION count_deleted_events() RETURNS trigger LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    UPDATE event_days d SET starts = d.starts - m.starts, ends = d.ends - m.ends
    FROM (SELECT o.site_id, o.status, v.day, sum(v.starts) AS starts, sum(v.ends) AS ends
          FROM old_rows o
          CROSS JOIN LATERAL (VALUES
              ((o.start_utc AT TIME ZONE 'UTC')::date, 1, 0),
              ((o.end_utc AT TIME ZONE 'UTC')::date, 0, 1)) AS v (day, starts, ends)
          WHERE NOT o.hide_from_listings
          GROUP BY o.site_id, o.status, v.day) m
    WHERE d.site_id = m.site_id AND d.status = m.status AND d.day = m.day;
    RETURN NULL;
END $$;
CREATE TRIGGER event_days_delete AFTER DELETE ON events
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION count_deleted_events();

-- The links of a deleted event are deleted with it, when its row can no longer be read. They are counted before.
CREATE FUNCTION count_links_of_deleted_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE link_days d SET starts = d.starts - 1, protected = d.protected - (OLD.password_hash IS NOT NULL)::integer
    FROM (SELECT 'v'::"char" AS kind, venue_id AS record_id FROM event_venues
              WHERE site_id = OLD.site_id AND event_id = OLD.id
          UNION ALL SELECT 'o', organizer_id FROM event_organizers WHERE site_id = OLD.site_id AND event_id = OLD.id
          UNION ALL SELECT 'c', category_id FROM event_categories WHERE site_id = OLD.site_id AND event_id = OLD.id
          UNION ALL SELECT 't', tag_id FROM event_tags WHERE site_id = OLD.site_id AND event_id = OLD.id) l
    WHERE d.site_id = OLD.site_id AND d.kind = l.kind AND d.record_id = l.record_id AND d.status = OLD.status
        AND d.day = (OLD.start_utc AT TIME ZONE 'UTC')::date;
    RETURN OLD;
END $$;
CREATE TRIGGER link_days_delete BEFORE DELETE ON events FOR EACH ROW
    WHEN (NOT OLD.hide_from_listings) EXECUTE FUNCTION count_links_of_deleted_event();

-- The counters, and the copies in the link tables, follow the events. EXCEPT finds the changed events in linear time
-- with any plan, because it does not join the two transition tables. Most updates change none of these columns.
CREATE FUNCTION follow_updated_events() RETURNS trigger LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    IF NOT EXISTS (
        SELECT site_id, id, status, hide_from_listings, start_utc, end_utc, password_hash IS NULL FROM new_rows
        EXCEPT
        SELECT site_id, id, status, hide_from_listings, start_utc, end_utc, password_hash IS NULL FROM old_rows) THEN
        RETURN NULL;
    END IF;

    INSERT INTO event_days AS d (site_id, status, day, starts, ends)
    SELECT m.site_id, m.status, v.day, sum(v.starts), sum(v.ends)
    FROM (SELECT site_id, status, start_utc, end_utc, hide_from_listings, 1 AS n FROM new_rows
          UNION ALL
          SELECT site_id, status, start_utc, end_utc, hide_from_listings, -1 FROM old_rows) m
    CROSS JOIN LATERAL (VALUES
        ((m.start_utc AT TIME ZONE 'UTC')::date, m.n, 0),
        ((m.end_utc AT TIME ZONE 'UTC')::date, 0, m.n)) AS v (day, starts, ends)
    WHERE NOT m.hide_from_listings
    GROUP BY m.site_id, m.status, v.day
    HAVING sum(v.starts) <> 0 OR sum(v.ends) <> 0
    ON CONFLICT (site_id, status, day)
    DO UPDATE SET starts = d.starts + excluded.starts, ends = d.ends + excluded.ends;

    INSERT INTO link_days AS d (site_id, record_id, starts, protected, day, kind, status)
    SELECT m.site_id, l.record_id, sum(m.n), sum(m.n * m.protected), m.day, l.kind, m.status
    FROM (SELECT *, 1 AS n FROM (
              SELECT site_id, id, status, (start_utc AT TIME ZONE 'UTC')::date AS day,
                  (password_hash IS NOT NULL)::integer AS protected FROM new_rows WHERE NOT hide_from_listings
              EXCEPT
              SELECT site_id, id, status, (start_utc AT TIME ZONE 'UTC')::date,
                  (password_hash IS NOT NULL)::integer FROM old_rows WHERE NOT hide_from_listings) added
          UNION ALL
          SELECT *, -1 FROM (
              SELECT site_id, id, status, (start_utc AT TIME ZONE 'UTC')::date,
                  (password_hash IS NOT NULL)::integer FROM old_rows WHERE NOT hide_from_listings
              EXCEPT
              SELECT site_id, id, status, (start_utc AT TIME ZONE 'UTC')::date,
                  (password_hash IS NOT NULL)::integer FROM new_rows WHERE NOT hide_from_listings) removed) m
    CROSS JOIN LATERAL (
        SELECT 'v'::"char" AS kind, venue_id AS record_id FROM event_venues
            WHERE site_id = m.site_id AND event_id = m.id
        UNION ALL SELECT 'o', organizer_id FROM event_organizers WHERE site_id = m.site_id AND event_id = m.id
        UNION ALL SELECT 'c', category_id FROM event_categories WHERE site_id = m.site_id AND event_id = m.id
        UNION ALL SELECT 't', tag_id FROM event_tags WHERE site_id = m.site_id AND event_id = m.id
        OFFSET 0) l
    GROUP BY m.site_id, l.kind, l.record_id, m.status, m.day
    HAVING sum(m.n) <> 0 OR sum(m.n * m.protected) <> 0
    ON CONFLICT (site_id, kind, record_id, status, day)
    DO UPDATE SET starts = d.starts + excluded.starts, protected = d.protected + excluded.protected;

    UPDATE event_venues l SET start_utc = c.start_utc, listed = c.listed, published = c.status = 'publish'
    FROM (SELECT site_id, id, start_utc, listed, status FROM new_rows
          EXCEPT SELECT site_id, id, start_utc, listed, status FROM old_rows) c
    WHERE l.site_id = c.site_id AND l.event_id = c.id;
    UPDATE event_organizers l SET start_utc = c.start_utc, listed = c.listed, published = c.status = 'publish'
    FROM (SELECT site_id, id, start_utc, listed, status FROM new_rows
          EXCEPT SELECT site_id, id, start_utc, listed, status FROM old_rows) c
    WHERE l.site_id = c.site_id AND l.event_id = c.id;
    UPDATE event_categories l SET start_utc = c.start_utc, listed = c.listed, published = c.status = 'publish'
    FROM (SELECT site_id, id, start_utc, listed, status FROM new_rows
          EXCEPT SELECT site_id, id, start_utc, listed, status FROM old_rows) c
    WHERE l.site_id = c.site_id AND l.event_id = c.id;
    UPDATE event_tags l SET start_utc = c.start_utc, listed = c.listed, published = c.status = 'publish'
    FROM (SELECT site_id, id, start_utc, listed, status FROM new_rows
          EXCEPT SELECT site_id, id, start_utc, listed, status FROM old_rows) c
    WHERE l.site_id = c.site_id AND l.event_id = c.id;
    RETURN NULL;
END $$;
CREATE TRIGGER event_links_follow AFTER UPDATE ON events
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION follow_updated_events();

-- Inserted and deleted links count in `link_days`, and links to terms also in the counts of these. An update of a link
-- changes its position or its copies: of these only `published` counts, for terms. The links of an event that has just
-- been deleted find no event; they have been counted already.
DO $do$
DECLARE
    counter record;
BEGIN
    FOR counter IN
        SELECT t.definition, l.links, l.record, l.kind, l.terms
        FROM (VALUES
            ('event_venues', 'venue', 'v', NULL),
            ('event_organizers', 'organizer', 'o', NULL),
            ('event_categories', 'category', 'c', 'categories'),
            ('event_tags', 'tag', 't', 'tags')) AS l (links, record, kind, terms)
        JOIN (VALUES
            (false, $f$
                CREATE FUNCTION count_inserted_%1$s() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    INSERT INTO link_days AS d (site_id, record_id, starts, protected, day, kind, status)
                    SELECT n.site_id, n.%2$s_id, count(*), count(e.password_hash), e.day, %3$L, e.status
                    FROM new_rows n CROSS JOIN LATERAL (
                        SELECT e.status, (e.start_utc AT TIME ZONE 'UTC')::date AS day, e.password_hash FROM events e
                        WHERE e.site_id = n.site_id AND e.id = n.event_id AND NOT e.hide_from_listings OFFSET 0) e
                    GROUP BY n.site_id, n.%2$s_id, e.status, e.day
                    ON CONFLICT (site_id, kind, record_id, status, day)
                    DO UPDATE SET starts = d.starts + excluded.starts, protected = d.protected + excluded.protected;
                    RETURN NULL;
                END $$;
                CREATE TRIGGER link_days_insert AFTER INSERT ON %1$s REFERENCING NEW TABLE AS new_rows
                    FOR EACH STATEMENT EXECUTE FUNCTION count_inserted_%1$s();
            $f$),
            (false, $f$
                CREATE FUNCTION count_deleted_%1$s() RETURNS trigger LANGUAGE plpgsql
                SET enable_hashjoin = off SET enable_mergejoin = off AS $$
                BEGIN
                    UPDATE link_days d SET starts = d.starts - m.starts, protected = d.protected - m.protected
                    FROM (SELECT o.site_id, o.%2$s_id AS record_id, e.status, e.day, count(*) AS starts,
                              count(e.password_hash) AS protected
                          FROM old_rows o CROSS JOIN LATERAL (
                              SELECT e.status, (e.start_utc AT TIME ZONE 'UTC')::date AS day, e.password_hash
                              FROM events e WHERE e.site_id = o.site_id AND e.id = o.event_id
                                  AND NOT e.hide_from_listings OFFSET 0) e
                          GROUP BY o.site_id, o.%2$s_id, e.status, e.day) m
                    WHERE d.site_id = m.site_id AND d.kind = %3$L AND d.record_id = m.record_id
                        AND d.status = m.status AND d.day = m.day;
                    RETURN NULL;
                END $$;
                CREATE TRIGGER link_days_delete AFTER DELETE ON %1$s REFERENCING OLD TABLE AS old_rows
                    FOR EACH STATEMENT EXECUTE FUNCTION count_deleted_%1$s();
            $f$),
            (true, $f$
                CREATE FUNCTION count_%2$s_insert() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    UPDATE %4$s t SET count = t.count + c.n
                    FROM (SELECT site_id, id, sum(n) AS n FROM (
                              SELECT site_id, %2$s_id AS id, 1 AS n FROM new_rows WHERE published) m
                          GROUP BY site_id, id HAVING sum(n) <> 0) c
                    WHERE t.site_id = c.site_id AND t.id = c.id;
                    RETURN NULL;
                END $$;
                CREATE TRIGGER %2$s_count_insert AFTER INSERT ON %1$s REFERENCING NEW TABLE AS new_rows
                    FOR EACH STATEMENT EXECUTE FUNCTION count_%2$s_insert();
            $f$),
            (true, $f$
                CREATE FUNCTION count_%2$s_update() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    UPDATE %4$s t SET count = t.count + c.n
                    FROM (SELECT site_id, id, sum(n) AS n FROM (
                              SELECT site_id, %2$s_id AS id, 1 AS n FROM new_rows WHERE published
                              UNION ALL SELECT site_id, %2$s_id, -1 FROM old_rows WHERE published) m
                          GROUP BY site_id, id HAVING sum(n) <> 0) c
                    WHERE t.site_id = c.site_id AND t.id = c.id;
                    RETURN NULL;
                END $$;
                CREATE TRIGGER %2$s_count_update AFTER UPDATE ON %1$s
                    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
                    FOR EACH STATEMENT EXECUTE FUNCTION count_%2$s_update();
            $f$),
            (true, $f$
                CREATE FUNCTION count_%2$s_delete() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    UPDATE %4$s t SET count = t.count + c.n
                    FROM (SELECT site_id, id, sum(n) AS n FROM (
                              SELECT site_id, %2$s_id AS id, -1 AS n FROM old_rows WHERE published) m
                          GROUP BY site_id, id HAVING sum(n) <> 0) c
                    WHERE t.site_id = c.site_id AND t.id = c.id;
                    RETURN NULL;
                END $$;
                CREATE TRIGGER %2$s_count_delete AFTER DELETE ON %1$s REFERENCING OLD TABLE AS old_rows
                    FOR EACH STATEMENT EXECUTE FUNCTION count_%2$s_delete();
            $f$)) AS t (counts_terms, definition) ON l.terms IS NOT NULL OR NOT t.counts_terms
    LOOP
        EXECUTE format(counter.definition, counter.links, counter.record, counter.kind, counter.terms);
    END LOOP;
END $do$;

-- The first date of each series ---------------------------------------------------------------

-- The public occurrences, each with the start of the one before it in its series. An occurrence is the first of its
-- series in a list that begins at an instant if it starts then or later and its predecessor started earlier.
-- Occurrences with a password are not here, because their series is not public (decision 0018).
CREATE TABLE series_steps (
    site_id        bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id             bigint NOT NULL,
    series_id      bigint NOT NULL,
    -- Copies of the columns of the event.
    start_utc      timestamptz NOT NULL,
    end_utc        timestamptz NOT NULL,
    published_at   timestamptz NOT NULL,
    -- -infinity for the first of its series.
    previous_start timestamptz NOT NULL,
    -- Class of the time since the predecessor. An occurrence of class n is the first after an instant only if it starts
    -- less than the limit of n after that instant, so the first occurrences are found without reading the others. The
    -- limits are those of common rules (a day, a week, a month, a year) plus the hour of a clock change; the list of
    -- first dates in Python has the same limits.
    gap_class      smallint NOT NULL GENERATED ALWAYS AS (
                       CASE WHEN previous_start = '-infinity' THEN 99 ELSE
                           width_bucket(extract(epoch FROM start_utc - previous_start), ARRAY[
                               3601, 14401, 43201, 90001, 176401, 349201, 608401, 1213201, 2422801, 2682001,
                               5360401, 10717201, 15987601, 31626001, 63248401, 126489601]::numeric[])
                       END) STORED,
    PRIMARY KEY (site_id, id)
);
CREATE INDEX series_steps_gap ON series_steps (site_id, gap_class, start_utc, published_at, id)
    INCLUDE (previous_start, end_utc, series_id);

-- The numbers of these occurrences that start and end on each UTC day: with event_days, the number of other events.
CREATE TABLE series_days (
    site_id bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    day     date NOT NULL,
    starts  bigint NOT NULL,
    ends    bigint NOT NULL,
    PRIMARY KEY (site_id, day)
);

-- Each of the three triggers has its own plans of these statements, and plans only those that it executes.
CREATE FUNCTION keep_series_steps() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- Occurrences that have left their place in the series, and those that have taken one.
    gone series_steps[];
    added series_steps[];
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT array_agg(ROW (site_id, id, series_id, start_utc, end_utc, published_at, NULL, NULL)::series_steps)
        INTO added FROM new_rows WHERE series_id IS NOT NULL AND listed AND password_hash IS NULL;
    ELSIF TG_OP = 'DELETE' THEN
        SELECT array_agg(ROW (site_id, id, series_id, start_utc, end_utc, published_at, NULL, NULL)::series_steps)
        INTO gone FROM old_rows WHERE series_id IS NOT NULL AND listed AND password_hash IS NULL;
    ELSIF EXISTS (SELECT FROM new_rows WHERE series_id IS NOT NULL)
        OR EXISTS (SELECT FROM old_rows WHERE series_id IS NOT NULL) THEN
        WITH before AS MATERIALIZED (
            SELECT site_id, id, series_id, start_utc, end_utc, published_at FROM old_rows
            WHERE series_id IS NOT NULL AND listed AND password_hash IS NULL),
        after AS MATERIALIZED (
            SELECT site_id, id, series_id, start_utc, end_utc, published_at FROM new_rows
            WHERE series_id IS NOT NULL AND listed AND password_hash IS NULL)
        SELECT
            (SELECT array_agg(ROW (g.*, NULL, NULL)::series_steps) FROM (TABLE before EXCEPT TABLE after) g),
            (SELECT array_agg(ROW (a.*, NULL, NULL)::series_steps) FROM (TABLE after EXCEPT TABLE before) a)
        INTO gone, added;
    END IF;
    IF gone IS NULL AND added IS NULL THEN
        RETURN NULL;
    END IF;
    DELETE FROM series_steps s USING unnest(gone) g WHERE s.site_id = g.site_id AND s.id = g.id;
    -- Besides the added occurrences, those change that follow a place which was left or taken.
    INSERT INTO series_steps AS s (site_id, id, series_id, start_utc, end_utc, published_at, previous_start)
    SELECT m.site_id, m.id, m.series_id, m.start_utc, m.end_utc, m.published_at,
        coalesce((SELECT p.start_utc FROM events p
            WHERE p.site_id = m.site_id AND p.series_id = m.series_id AND p.listed AND p.password_hash IS NULL
                AND (p.start_utc, p.id) < (m.start_utc, m.id)
            ORDER BY p.start_utc DESC, p.id DESC LIMIT 1), '-infinity')
    FROM (
        SELECT a.site_id, a.id, a.series_id, a.start_utc, a.end_utc, a.published_at FROM unnest(added) a
        UNION
        SELECT n.site_id, n.id, n.series_id, n.start_utc, n.end_utc, n.published_at
        FROM (SELECT * FROM unnest(added) UNION ALL SELECT * FROM unnest(gone)) c
        CROSS JOIN LATERAL (
            SELECT * FROM events n
            WHERE n.site_id = c.site_id AND n.series_id = c.series_id AND n.listed AND n.password_hash IS NULL
                AND (n.start_utc, n.id) > (c.start_utc, c.id)
            ORDER BY n.start_utc, n.id LIMIT 1) n) m
    ON CONFLICT (site_id, id) DO UPDATE SET previous_start = excluded.previous_start;
    INSERT INTO series_days AS d (site_id, day, starts, ends)
    SELECT site_id, day, sum(starts), sum(ends)
    FROM (SELECT a.*, 1 AS n FROM unnest(added) a UNION ALL SELECT g.*, -1 FROM unnest(gone) g) m
    CROSS JOIN LATERAL (VALUES
        ((m.start_utc AT TIME ZONE 'UTC')::date, m.n, 0),
        ((m.end_utc AT TIME ZONE 'UTC')::date, 0, m.n)) AS v (day, starts, ends)
    GROUP BY site_id, day
    HAVING sum(starts) <> 0 OR sum(ends) <> 0
    ON CONFLICT (site_id, day) DO UPDATE SET starts = d.starts + excluded.starts, ends = d.ends + excluded.ends;
    RETURN NULL;
END $$;
CREATE TRIGGER series_steps_insert AFTER INSERT ON events
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_series_steps();
CREATE TRIGGER series_steps_update AFTER UPDATE ON events
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION keep_series_steps();
CREATE TRIGGER series_steps_delete AFTER DELETE ON events
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION keep_series_steps();

-- Fills both tables from the events, where the triggers have not run.
CREATE FUNCTION rebuild_series_steps() RETURNS void LANGUAGE sql AS $$
    DELETE FROM series_steps;
    DELETE FROM series_days;
    INSERT INTO series_steps (site_id, id, series_id, start_utc, end_utc, published_at, previous_start)
    SELECT site_id, id, series_id, start_utc, end_utc, published_at,
        coalesce(lag(start_utc) OVER (PARTITION BY site_id, series_id ORDER BY start_utc, id), '-infinity')
    FROM events WHERE series_id IS NOT NULL AND listed AND password_hash IS NULL;
    INSERT INTO series_days (site_id, day, starts, ends)
    SELECT s.site_id, v.day, sum(v.starts), sum(v.ends) FROM series_steps s
    CROSS JOIN LATERAL (VALUES
        ((s.start_utc AT TIME ZONE 'UTC')::date, 1, 0),
        ((s.end_utc AT TIME ZONE 'UTC')::date, 0, 1)) AS v (day, starts, ends)
    GROUP BY s.site_id, v.day;
$$;
REVOKE ALL ON FUNCTION rebuild_series_steps() FROM PUBLIC;

-- Events with coordinates ---------------------------------------------------------------------
-- A change of a venue affects all of its events. A few of them are updated immediately. If there are many, the venue
-- is marked: lists read the links instead of `geoloc_known` until the worker has updated the events in batches.

CREATE FUNCTION geoloc_link_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE events e SET geoloc_known = true
    FROM (SELECT DISTINCT n.site_id, n.event_id FROM new_rows n
          JOIN venues v ON v.site_id = n.site_id AND v.id = n.venue_id
          WHERE v.status = 'publish' AND v.location IS NOT NULL) p
    WHERE e.site_id = p.site_id AND e.id = p.event_id AND NOT e.geoloc_known;
    RETURN NULL;
END $$;
CREATE TRIGGER geoloc_insert AFTER INSERT ON event_venues
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION geoloc_link_events();

CREATE FUNCTION geoloc_unlink_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE events e SET geoloc_known = false
    FROM (SELECT DISTINCT o.site_id, o.event_id FROM old_rows o) p
    WHERE e.site_id = p.site_id AND e.id = p.event_id AND e.geoloc_known AND NOT EXISTS (
        SELECT FROM event_venues l JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
        WHERE l.site_id = e.site_id AND l.event_id = e.id AND v.status = 'publish' AND v.location IS NOT NULL);
    RETURN NULL;
END $$;
CREATE TRIGGER geoloc_delete AFTER DELETE ON event_venues
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION geoloc_unlink_events();

-- Corrects at most `most` events of a venue and returns their number.
CREATE FUNCTION geoloc_update_events(of_site bigint, of_venue bigint, most integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    corrected integer;
BEGIN
    UPDATE events u SET geoloc_known = NOT u.geoloc_known
    WHERE u.site_id = of_site AND u.id IN (
        SELECT e.id FROM event_venues m JOIN events e ON e.site_id = m.site_id AND e.id = m.event_id
        WHERE m.site_id = of_site AND m.venue_id = of_venue AND e.geoloc_known <> EXISTS (
            SELECT FROM event_venues l JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
            WHERE l.site_id = e.site_id AND l.event_id = e.id AND v.status = 'publish' AND v.location IS NOT NULL)
        LIMIT most);
    GET DIAGNOSTICS corrected = ROW_COUNT;
    RETURN corrected;
END $$;

CREATE FUNCTION geoloc_mark_venue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.geoloc_pending := NEW.geoloc_pending OR (SELECT count(*) FROM (
        SELECT FROM event_venues l WHERE l.site_id = NEW.site_id AND l.venue_id = NEW.id LIMIT 501) c) > 500;
    RETURN NEW;
END $$;
CREATE TRIGGER geoloc_mark BEFORE UPDATE ON venues FOR EACH ROW
    WHEN ((OLD.status = 'publish' AND OLD.geo_lat IS NOT NULL) <> (NEW.status = 'publish' AND NEW.geo_lat IS NOT NULL))
    EXECUTE FUNCTION geoloc_mark_venue();

CREATE FUNCTION geoloc_follow_venue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM geoloc_update_events(NEW.site_id, NEW.id, 500);
    RETURN NULL;
END $$;
CREATE TRIGGER geoloc_update AFTER UPDATE ON venues FOR EACH ROW
    WHEN (NOT NEW.geoloc_pending AND (OLD.status = 'publish' AND OLD.geo_lat IS NOT NULL)
        <> (NEW.status = 'publish' AND NEW.geo_lat IS NOT NULL))
    EXECUTE FUNCTION geoloc_follow_venue();

-- The change log ------------------------------------------------------------------------------

CREATE TABLE changes (
    site_id    bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    revision   bigint NOT NULL,
    kind       text NOT NULL,
    record_id  bigint NOT NULL,
    action     text NOT NULL CHECK (action IN ('create', 'update', 'trash', 'restore', 'delete', 'settings')),
    user_id    bigint,
    changed_at timestamptz NOT NULL DEFAULT now(),
    -- The changed columns, before and after; null where none were logged.
    before     jsonb,
    after      jsonb,
    -- Whether the record was public before this change, so that its deletion is reported to everybody.
    was_public boolean NOT NULL DEFAULT false,
    -- The revision of the change of a series that caused a change of an event.
    cause      bigint,
    -- The body of a record has changed because of something else, and nobody has edited it.
    is_derived boolean NOT NULL DEFAULT false,
    PRIMARY KEY (site_id, revision)
);
CREATE INDEX changes_of_record ON changes (site_id, kind, record_id, revision);
CREATE INDEX changes_tombstones ON changes (site_id, revision) WHERE action = 'delete';
CREATE INDEX changes_cause ON changes (site_id, cause) WHERE cause IS NOT NULL;
-- For the job of all sites that trims the logs.
CREATE INDEX changes_date ON changes (changed_at);

-- Responses stored for a repeated Idempotency-Key, in the transaction of the write.
CREATE TABLE idempotency (
    site_id     bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    user_id     bigint NOT NULL,
    key         text NOT NULL CHECK (length(key) <= 255),
    fingerprint bytea NOT NULL,
    status      smallint NOT NULL,
    headers     jsonb NOT NULL,
    body        bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (site_id, user_id, key)
);
CREATE INDEX idempotency_age ON idempotency (site_id, created_at);

-- Former public slugs, for redirects to the current URL of the record.
CREATE TABLE slug_redirects (
    site_id   bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    kind      text NOT NULL,
    slug      text NOT NULL,
    record_id bigint NOT NULL,
    PRIMARY KEY (site_id, kind, slug)
);

-- Changes of a site after a revision, for the invalidation of caches. One statement reads the current revision, the
-- changes up to it (or up to `until_revision`), and the current times and links of changed events, so all of them
-- belong to the same snapshot. Texts are left out: they can be long, and no cache tag depends on them. If there are no
-- changes, or more than `maximum`, one row has the last revision only. The action of a derived change is `derived`,
-- which touches no list. The revision of a site counts only where the site is served: caches would take an older one
-- for the current one.
CREATE FUNCTION site_changes(asked_site bigint, after_revision bigint, until_revision bigint, maximum integer)
RETURNS TABLE (
    last_revision bigint, revision bigint, kind text, record_id bigint, action text, was_public boolean,
    columns text[], old jsonb, new jsonb, present jsonb
)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.last, c.revision, c.kind, c.record_id, CASE WHEN c.is_derived THEN 'derived' ELSE c.action END,
        c.was_public,
        ARRAY(SELECT jsonb_object_keys(coalesce(c.before, '{}') || coalesce(c.after, '{}'))),
        (SELECT jsonb_object_agg(o.key, o.value) FROM jsonb_each(c.before) o WHERE o.key = ANY(s.names)),
        (SELECT jsonb_object_agg(o.key, o.value) FROM jsonb_each(c.after) o WHERE o.key = ANY(s.names)),
        (SELECT jsonb_build_object(
                'start_local', e.start_local, 'end_local', e.end_local, 'series_id', e.series_id,
                'venue_ids', ARRAY(SELECT l.venue_id FROM event_venues l
                    WHERE l.site_id = e.site_id AND l.event_id = e.id),
                'organizer_ids', ARRAY(SELECT l.organizer_id FROM event_organizers l
                    WHERE l.site_id = e.site_id AND l.event_id = e.id),
                'category_ids', ARRAY(SELECT l.category_id FROM event_categories l
                    WHERE l.site_id = e.site_id AND l.event_id = e.id),
                'tag_ids', ARRAY(SELECT l.tag_id FROM event_tags l
                    WHERE l.site_id = e.site_id AND l.event_id = e.id))
            FROM events e WHERE c.kind = 'events' AND e.site_id = s.id AND e.id = c.record_id)
    FROM (
        SELECT id, least(revision, until_revision) AS last, ARRAY['status', 'start_local', 'end_local', 'series_id',
            'venue_ids', 'organizer_ids', 'category_ids', 'tag_ids'] AS names
        FROM sites WHERE id = asked_site AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = asked_site)
    ) s
    LEFT JOIN changes c ON c.site_id = s.id AND c.revision > after_revision AND c.revision <= s.last
        AND s.last - after_revision <= maximum
    ORDER BY c.revision
$$;

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

-- Imports -------------------------------------------------------------------------------------

-- A calendar, file or site from which records come.
CREATE TABLE import_sources (
    site_id              bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id                   bigint NOT NULL,
    kind                 text NOT NULL CHECK (kind IN ('ical', 'table', 'tec')),
    name                 text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- Empty: files are uploaded.
    url                  text NOT NULL DEFAULT '' CHECK (length(url) <= 2000),
    -- Minutes between two fetches; null: fetched on request only.
    interval_minutes     integer CHECK (interval_minutes BETWEEN 15 AND 10080),
    -- The user whose rights apply and who is notified of failures; null: the account was deleted.
    owner_id             bigint,
    default_status       text NOT NULL DEFAULT 'draft'
                         CHECK (default_status IN ('publish', 'draft', 'pending', 'private')),
    default_category_id  bigint,
    -- Which value counts where the source and a person have both changed a field.
    authority            text NOT NULL DEFAULT 'local' CHECK (authority IN ('source', 'local', 'new_only')),
    -- The time zone of times without one; empty: such events are rejected.
    timezone             text NOT NULL DEFAULT '',
    -- The field of each column of a table, by the header of the column.
    columns              jsonb NOT NULL DEFAULT '{}',
    -- Of several sources of a record, the one with the lowest rank supplies a field.
    trust_rank           integer NOT NULL DEFAULT 100,
    allow_mass_deletion  boolean NOT NULL DEFAULT false,
    state                text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused', 'closed')),
    etag                 text NOT NULL DEFAULT '',
    last_modified        text NOT NULL DEFAULT '',
    input_hash           bytea,
    -- Facts of a site that moves in: address, namespaces, time zone.
    facts                jsonb NOT NULL DEFAULT '{}',
    created_at           timestamptz NOT NULL,
    next_run_at          timestamptz,
    last_success_at      timestamptz,
    failures             integer NOT NULL DEFAULT 0,
    -- Calendars name organizers with their e-mail addresses, which are often private.
    organizer_emails     boolean NOT NULL DEFAULT false,
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, owner_id) REFERENCES users (site_id, id) ON DELETE SET NULL (owner_id),
    FOREIGN KEY (site_id, default_category_id) REFERENCES categories (site_id, id)
        ON DELETE SET NULL (default_category_id)
);
-- For the job of all sites.
CREATE INDEX import_sources_due ON import_sources (next_run_at) WHERE state = 'active' AND next_run_at IS NOT NULL;

-- A record as its source knows it.
CREATE TABLE import_items (
    site_id        bigint NOT NULL,
    source_id      bigint NOT NULL,
    kind           text NOT NULL,
    -- The UID of an event, or the ID of a record of a site that moves in.
    identity       text NOT NULL CHECK (length(identity) BETWEEN 1 AND 1000),
    -- The RECURRENCE-ID of a date of a series in local time; empty: the event or the series itself.
    recurrence_id  text NOT NULL DEFAULT '',
    record_id      bigint NOT NULL,
    -- Finds an event whose UID has changed.
    fingerprint    text NOT NULL,
    -- The values that the source sent last, by parameter; no passwords.
    source_values  jsonb NOT NULL,
    -- The values of these fields that were stored afterwards, so that a later edit by a person is noticed.
    stored_values  jsonb NOT NULL DEFAULT '{}',
    first_seen_at  timestamptz NOT NULL,
    last_seen_at   timestamptz NOT NULL,
    -- Successful fetches without the item, one after the other.
    absences       integer NOT NULL DEFAULT 0,
    PRIMARY KEY (site_id, source_id, kind, identity, recurrence_id),
    FOREIGN KEY (site_id, source_id) REFERENCES import_sources (site_id, id) ON DELETE CASCADE
);
CREATE INDEX import_items_record ON import_items (site_id, kind, record_id);

CREATE TABLE import_runs (
    site_id         bigint NOT NULL,
    id              bigint NOT NULL,
    source_id       bigint NOT NULL,
    -- The user who started the run; null: the worker.
    user_id         bigint,
    -- The run that this one undoes.
    undoes          bigint,
    state           text NOT NULL CHECK (state IN
        ('planning', 'planned', 'applying', 'applied', 'unchanged', 'failed', 'discarded')),
    started_at      timestamptz NOT NULL,
    planned_at      timestamptz,
    finished_at     timestamptz,
    -- The number of rows by action, and of rows applied.
    counts          jsonb NOT NULL DEFAULT '{}',
    -- A message {"text", "values"} with the cause of a failure.
    failure         jsonb,
    -- Why a person has to look at the plan, as messages.
    warnings        jsonb NOT NULL DEFAULT '[]',
    progress        jsonb NOT NULL DEFAULT '{}',
    options         jsonb NOT NULL DEFAULT '{}',
    -- The columns of a table and its first rows, to choose what each column means; null: no table.
    preview         jsonb,
    input_hash      bytea,
    first_revision  bigint,
    last_revision   bigint,
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, source_id) REFERENCES import_sources (site_id, id) ON DELETE CASCADE,
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE SET NULL (user_id)
);
CREATE INDEX import_runs_source ON import_runs (site_id, source_id, id DESC);

-- What a run does, record by record.
CREATE TABLE import_rows (
    site_id          bigint NOT NULL,
    run_id           bigint NOT NULL,
    -- The order in which rows are applied.
    number           bigint NOT NULL,
    action           text NOT NULL CHECK (action IN
        ('new', 'changed', 'moved', 'unchanged', 'gone', 'rejected', 'duplicate', 'linked')),
    kind             text NOT NULL,
    identity         text NOT NULL DEFAULT '',
    recurrence_id    text NOT NULL DEFAULT '',
    title            text NOT NULL DEFAULT '',
    record_id        bigint,
    -- The revision of the record when it was planned; another one is planned again.
    record_revision  bigint,
    -- The imported record in normal form; null: gone or rejected.
    imported         jsonb,
    -- The changed fields: {field: {"stored", "before", "now", "decision"}}.
    changes          jsonb NOT NULL DEFAULT '{}',
    -- Messages: why a row was rejected or waits, and what is lost.
    reasons          jsonb NOT NULL DEFAULT '[]',
    -- The line or row of the input.
    line             integer,
    state            text NOT NULL DEFAULT 'pending'
                     CHECK (state IN ('pending', 'waiting', 'applied', 'skipped', 'failed')),
    -- The revisions that the row has written, from the first to the last.
    first_revision   bigint,
    revision         bigint,
    -- The events that people have declared different from the record of the row, before that record existed.
    different_from   bigint[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (site_id, run_id, number),
    FOREIGN KEY (site_id, run_id) REFERENCES import_runs (site_id, id) ON DELETE CASCADE
);
CREATE INDEX import_rows_pending ON import_rows (site_id, run_id, number) WHERE state = 'pending';
CREATE INDEX import_rows_action ON import_rows (site_id, run_id, action, number);
CREATE INDEX import_rows_different ON import_rows (site_id, run_id) WHERE different_from <> '{}';

-- The file that was uploaded last for a source, until the next one; its plan can be made again with other columns.
CREATE TABLE import_files (
    site_id      bigint NOT NULL,
    source_id    bigint NOT NULL,
    name         text NOT NULL CHECK (length(name) <= 255),
    content      bytea NOT NULL,
    uploaded_at  timestamptz NOT NULL,
    PRIMARY KEY (site_id, source_id),
    FOREIGN KEY (site_id, source_id) REFERENCES import_sources (site_id, id) ON DELETE CASCADE
);

-- Pairs of events that people have declared different; the lower ID is the first.
CREATE TABLE not_duplicates (
    site_id   bigint NOT NULL,
    event_id  bigint NOT NULL,
    other_id  bigint NOT NULL CHECK (other_id > event_id),
    PRIMARY KEY (site_id, event_id, other_id),
    FOREIGN KEY (site_id, event_id) REFERENCES events (site_id, id) ON DELETE CASCADE,
    FOREIGN KEY (site_id, other_id) REFERENCES events (site_id, id) ON DELETE CASCADE
);
CREATE INDEX not_duplicates_other ON not_duplicates (site_id, other_id);

-- Paths of image files on the former site, without the host.
CREATE TABLE legacy_files (
    site_id   bigint NOT NULL,
    path      text NOT NULL CHECK (length(path) BETWEEN 1 AND 2000),
    media_id  bigint NOT NULL,
    width     integer NOT NULL,
    PRIMARY KEY (site_id, path),
    FOREIGN KEY (site_id, media_id) REFERENCES media (site_id, id) ON DELETE CASCADE
);
CREATE INDEX legacy_files_media ON legacy_files (site_id, media_id);

-- Beginnings of paths on the former site that differ here, such as `/veranstaltung/` for `/event/`.
CREATE TABLE prefix_redirects (
    site_id  bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    old      text NOT NULL CHECK (length(old) BETWEEN 2 AND 500),
    new      text NOT NULL CHECK (length(new) BETWEEN 1 AND 500),
    PRIMARY KEY (site_id, old)
);

-- Entering a site -----------------------------------------------------------------------------

-- A stored plan is made for a site of average size. In a database with many small sites and one of 200,000 events, such
-- a plan reads all of these events to find one by its slug. The statements of a site that is much larger than the
-- average are therefore planned for that site, each time, until the end of the transaction.
CREATE FUNCTION adapt_plans(posts bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM pg_class e, pg_class s WHERE e.oid = 'events'::regclass AND s.oid = 'sites'::regclass
            AND e.reltuples > 0 AND posts > 10 * e.reltuples / greatest(s.reltuples, 1)
    ) THEN
        PERFORM set_config('plan_cache_mode', 'force_custom_plan', true);
    END IF;
END $$;

-- Enters a site by host, or returns nothing. Without a directory, a single site has every host.
--
-- Where sites can move, a write holds a shared lock until its end. The switch to another cell waits for the lock, so
-- no write is in progress then, and a write that has waited for the switch finds the site departed.
CREATE FUNCTION enter_site(asked_host text) RETURNS SETOF sites
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    found_site bigint;
    entered sites;
BEGIN
    SELECT h.site_id INTO found_site FROM site_hosts h WHERE h.host = asked_host;
    IF found_site IS NULL THEN
        SELECT min(s.id) INTO found_site FROM (SELECT id FROM sites LIMIT 2) s
        WHERE NOT EXISTS (SELECT FROM cell) HAVING count(*) = 1;
    END IF;
    PERFORM set_config('kalends.site_id', coalesce(found_site, 0)::text, true);
    -- Two conditions, because the first alone needs no query.
    IF current_setting('transaction_read_only') = 'off' THEN
        IF EXISTS (SELECT FROM cell) THEN
            PERFORM pg_advisory_xact_lock_shared(hashtextextended('kalends.site', found_site));
        END IF;
    END IF;
    SELECT * INTO entered FROM sites
    WHERE id = found_site AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = found_site);
    IF FOUND THEN
        IF entered.last_post_id > 1000 THEN
            PERFORM adapt_plans(entered.last_post_id);
        END IF;
        RETURN NEXT entered;
    END IF;
END $$;

-- Enters a site by ID.
CREATE FUNCTION enter_site_number(asked bigint) RETURNS SETOF sites
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    entered sites;
BEGIN
    PERFORM set_config('kalends.site_id', asked::text, true);
    IF current_setting('transaction_read_only') = 'off' THEN
        IF EXISTS (SELECT FROM cell) THEN
            PERFORM pg_advisory_xact_lock_shared(hashtextextended('kalends.site', asked));
        END IF;
    END IF;
    SELECT * INTO entered FROM sites
    WHERE id = asked AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = asked);
    IF FOUND THEN
        IF entered.last_post_id > 1000 THEN
            PERFORM adapt_plans(entered.last_post_id);
        END IF;
        RETURN NEXT entered;
    END IF;
END $$;

-- In PL/pgSQL, which keeps the plans of the statement; every cached response asks for the revision of its site.
CREATE FUNCTION site_revisions(asked_hosts text[])
RETURNS TABLE (host text, site_id bigint, revision bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT a.host, s.id, s.revision
    FROM unnest(asked_hosts) AS a (host)
    LEFT JOIN site_hosts h ON h.host = a.host
    JOIN sites s ON s.id = coalesce(h.site_id,
        (SELECT min(o.id) FROM (SELECT id FROM sites LIMIT 2) o
         WHERE NOT EXISTS (SELECT FROM cell) HAVING count(*) = 1));
END $$;

-- Hosts of the site of the transaction.
CREATE FUNCTION own_hosts() RETURNS TABLE (host text) LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT h.host FROM site_hosts h WHERE h.site_id = current_setting('kalends.site_id')::bigint ORDER BY h.host
$$;

-- Background work -----------------------------------------------------------------------------

-- A job has a site, and a transaction can enqueue jobs for its site only. Each queue has its own slots in the worker,
-- so that urgent jobs never wait for images or imports. In a queue, jobs with a higher priority start first.
CREATE FUNCTION enqueue_job(task text, arguments jsonb, at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
        CASE task WHEN 'make_sizes' THEN 'images' WHEN 'send_email' THEN 'email' WHEN 'plan_import' THEN 'background'
            WHEN 'apply_import' THEN 'background' ELSE 'default' END,
        task, CASE task WHEN 'publish' THEN 1 ELSE 0 END, NULL, NULL,
        arguments || jsonb_build_object('site_id', current_setting('kalends.site_id')::bigint),
        at)::procrastinate_job_to_defer_v1]);
END $$;

-- The server may not read the queue, which has jobs of all sites; the time of the last heartbeat discloses nothing.
CREATE FUNCTION worker_heartbeat() RETURNS timestamptz LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT max(w.last_heartbeat) FROM procrastinate_workers w
$$;

-- The following functions find work for the worker in all sites except those that another cell serves.

-- Scheduled records whose publication date has passed. Dates of a scheduled series are published with it.
CREATE FUNCTION due_records(most integer) RETURNS TABLE (site_id bigint, kind text, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    (SELECT s.site_id, 'series', s.id FROM series s WHERE s.status = 'future' AND s.published_at <= now()
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.site_id)
     LIMIT most)
    UNION ALL
    (SELECT e.site_id, 'events', e.id FROM events e WHERE e.status = 'future' AND e.published_at <= now()
     AND NOT EXISTS (SELECT FROM series s WHERE s.site_id = e.site_id AND s.id = e.series_id AND s.status = 'future')
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = e.site_id)
     LIMIT most)
    UNION ALL
    (SELECT v.site_id, 'venues', v.id FROM venues v WHERE v.status = 'future' AND v.published_at <= now()
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = v.site_id)
     LIMIT most)
    UNION ALL
    (SELECT o.site_id, 'organizers', o.id FROM organizers o WHERE o.status = 'future' AND o.published_at <= now()
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = o.site_id)
     LIMIT most)
$$;

-- Records that were trashed before a time. A series follows its dates: it is deleted when none of them is left.
CREATE FUNCTION old_trash(cutoff timestamptz, most integer)
RETURNS TABLE (site_id bigint, kind text, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    (SELECT e.site_id, 'events', e.id FROM events e WHERE e.status = 'trash' AND e.trashed_at < cutoff
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = e.site_id)
     LIMIT most)
    UNION ALL
    (SELECT v.site_id, 'venues', v.id FROM venues v WHERE v.status = 'trash' AND v.trashed_at < cutoff
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = v.site_id)
     LIMIT most)
    UNION ALL
    (SELECT o.site_id, 'organizers', o.id FROM organizers o WHERE o.status = 'trash' AND o.trashed_at < cutoff
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = o.site_id)
     LIMIT most)
    UNION ALL
    (SELECT s.site_id, 'series', s.id FROM series s WHERE s.status = 'trash' AND s.trashed_at < cutoff
     AND NOT EXISTS (SELECT FROM events e WHERE e.site_id = s.site_id AND e.series_id = s.id)
     AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.site_id)
     LIMIT most)
$$;

-- Sites whose change log has entries from before a time. Sites without such entries cost nothing.
CREATE FUNCTION sites_with_old_changes(cutoff timestamptz) RETURNS TABLE (site_id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT DISTINCT c.site_id FROM changes c
    WHERE c.changed_at < cutoff AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = c.site_id)
$$;

-- Series whose next dates have to be created.
CREATE FUNCTION incomplete_series(horizon timestamptz, most integer)
RETURNS TABLE (site_id bigint, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.site_id, s.id FROM series s
    WHERE s.created_until < horizon AND s.status <> 'trash'
        AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.site_id)
    ORDER BY s.site_id, s.created_until LIMIT most
$$;

-- Sources of imports that are due.
CREATE FUNCTION due_imports(most integer) RETURNS TABLE (site_id bigint, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT s.site_id, s.id FROM import_sources s
    WHERE s.state = 'active' AND s.next_run_at <= now()
        AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = s.site_id)
    ORDER BY s.next_run_at LIMIT most
$$;

-- Venues whose events have to be updated.
CREATE FUNCTION geoloc_pending_venues(most integer) RETURNS TABLE (site_id bigint, id bigint)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT v.site_id, v.id FROM venues v
    WHERE v.geoloc_pending AND NOT EXISTS (SELECT FROM unserved_sites u WHERE u.site_id = v.site_id)
    LIMIT most
$$;

-- Roles and rights ----------------------------------------------------------------------------
-- The server switches to kalends_app in every transaction. That role owns nothing and sees only the rows of the
-- site that the transaction has entered. kalends_queue has the rights of the worker on the queue, which has jobs of all
-- sites; servers do not have it.

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['kalends_app', 'kalends_queue'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
                EXECUTE format('CREATE ROLE %I NOLOGIN', role);
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- Roles belong to the whole cluster: another database was migrated concurrently.
        END;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), role);
    END LOOP;
    EXECUTE format('GRANT kalends_app TO %I', current_user);
END $$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['users', 'application_passwords', 'application_password_uses', 'login_failures',
        'sessions', 'passkeys', 'one_time_tokens', 'drafts', 'saved_filters', 'daily_records', 'site_styles', 'media',
        'media_files', 'orphan_files', 'categories', 'tags', 'venues', 'organizers', 'series', 'events',
        'event_venues', 'event_organizers', 'event_categories', 'event_tags', 'event_days', 'link_days',
        'series_steps', 'series_days', 'changes', 'idempotency', 'slug_redirects', 'import_sources', 'import_items',
        'import_runs', 'import_rows', 'import_files', 'not_duplicates', 'legacy_files', 'prefix_redirects'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY site_fence ON %I TO kalends_app
            USING (site_id = current_setting(''kalends.site_id'')::bigint)
            WITH CHECK (site_id = current_setting(''kalends.site_id'')::bigint)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO kalends_app', name);
    END LOOP;
END $$;

-- The settings, counters and marks that the server writes. Only the owner of the tables changes the ID, the secret and
-- the date of creation of a site.
ALTER TABLE sites ENABLE ROW LEVEL SECURITY;
CREATE POLICY site_fence ON sites TO kalends_app USING (id = current_setting('kalends.site_id')::bigint);
GRANT SELECT, UPDATE (
    name, base_url, timezone, language, currency_symbol, currency_position, currency_code, per_page, logo_url, accent,
    second_accent, fonts, first_weekday, default_view, imprint_url, privacy_url, parent_url, custom_css_hash,
    revision, trimmed_revision, last_post_id, last_term_id, last_user_id, former_host, former_last_id
) ON sites TO kalends_app;

-- The server reads the version of the schema without being its owner.
GRANT SELECT ON alembic_version, schema_compatibility TO kalends_app;

-- SECURITY DEFINER functions resolve names in the schema of the owner, never among temporary objects of the caller.
DO $$
DECLARE
    name regprocedure;
BEGIN
    FOR name IN SELECT p.oid FROM pg_proc p WHERE p.prosecdef AND p.proname IN (
        'enter_site', 'enter_site_number', 'site_revisions', 'own_hosts', 'site_changes', 'dated_changes',
        'enqueue_job', 'worker_heartbeat', 'due_records', 'old_trash', 'sites_with_old_changes', 'incomplete_series',
        'due_imports', 'geoloc_pending_venues') LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', name, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', name);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO kalends_app', name);
    END LOOP;
    -- The planner does not know the cutoff and would expect a third of all entries to be older.
    ALTER FUNCTION sites_with_old_changes(timestamptz) SET enable_seqscan = off;
END $$;

DO $$
DECLARE
    found record;
BEGIN
    FOR found IN SELECT c.oid::regclass AS name, c.relkind FROM pg_class c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relname LIKE 'procrastinate\_%'
            AND c.relkind IN ('r', 'S') LOOP
        IF found.relkind = 'S' THEN
            EXECUTE format('GRANT USAGE, SELECT ON SEQUENCE %s TO kalends_queue', found.name);
        ELSE
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO kalends_queue', found.name);
        END IF;
    END LOOP;
END $$;

-- Under row-level security an index serves only LEAKPROOF conditions, which reveal nothing about rows of other sites.
-- LIKE, overlap and the distance test reveal only true or false. Declaring that needs a superuser; without it searches
-- are correct but scan the rows of the site.
DO $$
BEGIN
    ALTER FUNCTION pg_catalog.textlike(text, text) LEAKPROOF;
    ALTER FUNCTION pg_catalog.textnlike(text, text) LEAKPROOF;
    ALTER FUNCTION pg_catalog.arrayoverlap(anyarray, anyarray) LEAKPROOF;
    EXECUTE 'ALTER FUNCTION st_dwithin(geography, geography, double precision, boolean) LEAKPROOF';
    EXECUTE 'ALTER FUNCTION geography_overlaps(geography, geography) LEAKPROOF';
EXCEPTION WHEN insufficient_privilege THEN
    RAISE WARNING 'Without superuser rights the search indexes are not used under row-level security.';
END $$;
