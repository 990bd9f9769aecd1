-- Sites, users, the five kinds of record, their links, and the change log.
--
-- Every table of a site has site_id first in its primary key, unique indexes and foreign keys, so that links across
-- sites are impossible and a site can be moved as a whole.

CREATE EXTENSION IF NOT EXISTS postgis;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE EXTENSION IF NOT EXISTS btree_gin;

-- Sites -------------------------------------------------------------------------------------

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
    created_at        timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE site_hosts (
    host    text PRIMARY KEY,
    site_id bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE
);

INSERT INTO sites (id) VALUES (1);

-- Users -------------------------------------------------------------------------------------

CREATE TABLE users (
    site_id       bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id            bigint NOT NULL,
    login         text NOT NULL CHECK (login <> '' AND length(login) <= 60),
    email         text NOT NULL DEFAULT '',
    display_name  text NOT NULL DEFAULT '',
    role          text NOT NULL
                  CHECK (role IN ('subscriber', 'contributor', 'author', 'editor', 'administrator')),
    password_hash text NOT NULL DEFAULT '',
    created_at    timestamptz NOT NULL DEFAULT now(),
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
    PRIMARY KEY (site_id, id),
    UNIQUE (site_id, user_id, name),
    FOREIGN KEY (site_id, user_id) REFERENCES users (site_id, id) ON DELETE CASCADE
);

-- Terms -------------------------------------------------------------------------------------

CREATE TABLE categories (
    site_id     bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id          bigint NOT NULL,
    revision    bigint NOT NULL,
    parent      bigint,
    name        text NOT NULL CHECK (length(name) <= 200),
    name_folded text NOT NULL,
    slug        text NOT NULL CHECK (slug <> '' AND length(slug) <= 200),
    description text NOT NULL DEFAULT '',
    -- Number of published events with this term, updated by the triggers below.
    count       bigint NOT NULL DEFAULT 0 CHECK (count >= 0),
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, parent) REFERENCES categories (site_id, id),
    CHECK (parent <> id)
);
CREATE UNIQUE INDEX categories_slug ON categories (site_id, slug);
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
CREATE INDEX tags_name ON tags (site_id, name_folded, id);
CREATE INDEX tags_search ON tags USING gin (site_id, name_folded gin_trgm_ops, slug gin_trgm_ops);

-- Posts -------------------------------------------------------------------------------------

-- The media library follows in 0004; the table is needed here for foreign keys.
CREATE TABLE media (
    site_id   bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id        bigint NOT NULL,
    revision  bigint NOT NULL,
    url       text NOT NULL,
    extension text NOT NULL,
    width     integer NOT NULL,
    height    integer NOT NULL,
    filesize  bigint NOT NULL,
    sizes     jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (site_id, id)
);

CREATE INDEX media_url ON media (site_id, url);

CREATE TABLE venues (
    site_id        bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id             bigint NOT NULL,
    revision       bigint NOT NULL,
    author         bigint NOT NULL,
    status         text NOT NULL CHECK (status IN ('publish', 'draft', 'pending', 'private', 'future', 'trash')),
    -- The status before the record was trashed, for restore.
    trashed_status text NOT NULL DEFAULT '',
    trashed_at     timestamptz,
    slug           text NOT NULL DEFAULT '' CHECK (length(slug) <= 220),
    date_utc       timestamptz NOT NULL,
    modified_utc   timestamptz NOT NULL,
    title          text NOT NULL CHECK (length(title) <= 10000),
    description    text NOT NULL DEFAULT '' CHECK (length(description) <= 300000),
    address        text NOT NULL DEFAULT '',
    city           text NOT NULL DEFAULT '',
    country        text NOT NULL DEFAULT '',
    province       text NOT NULL DEFAULT '',
    state          text NOT NULL DEFAULT '',
    zip            text NOT NULL DEFAULT '',
    phone          text NOT NULL DEFAULT '',
    stateprovince  text NOT NULL DEFAULT '',
    website        text NOT NULL DEFAULT '',
    show_map       boolean NOT NULL DEFAULT true,
    show_map_link  boolean NOT NULL DEFAULT true,
    image_id       bigint,
    geo_lat        double precision CHECK (geo_lat BETWEEN -90 AND 90),
    geo_lng        double precision CHECK (geo_lng BETWEEN -180 AND 180),
    location       geography(Point, 4326) GENERATED ALWAYS AS
                   (ST_SetSRID(ST_MakePoint(geo_lng, geo_lat), 4326)::geography) STORED,
    search_text    text NOT NULL DEFAULT '',
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, author) REFERENCES users (site_id, id),
    FOREIGN KEY (site_id, image_id) REFERENCES media (site_id, id),
    CHECK ((geo_lat IS NULL) = (geo_lng IS NULL))
);
CREATE UNIQUE INDEX venues_slug ON venues (site_id, slug) WHERE slug <> '';
CREATE INDEX venues_list ON venues (site_id, date_utc DESC, id DESC) INCLUDE (status);
CREATE INDEX venues_title ON venues (site_id, title) WHERE length(title) < 500;
CREATE INDEX venues_search ON venues USING gin (site_id, search_text gin_trgm_ops);
CREATE INDEX venues_location ON venues USING gist (site_id, location);

CREATE TABLE organizers (
    site_id        bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id             bigint NOT NULL,
    revision       bigint NOT NULL,
    author         bigint NOT NULL,
    status         text NOT NULL CHECK (status IN ('publish', 'draft', 'pending', 'private', 'future', 'trash')),
    trashed_status text NOT NULL DEFAULT '',
    trashed_at     timestamptz,
    slug           text NOT NULL DEFAULT '' CHECK (length(slug) <= 220),
    date_utc       timestamptz NOT NULL,
    modified_utc   timestamptz NOT NULL,
    title          text NOT NULL CHECK (length(title) <= 10000),
    description    text NOT NULL DEFAULT '' CHECK (length(description) <= 300000),
    phone          text NOT NULL DEFAULT '',
    website        text NOT NULL DEFAULT '',
    email          text NOT NULL DEFAULT '',
    image_id       bigint,
    search_text    text NOT NULL DEFAULT '',
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, author) REFERENCES users (site_id, id),
    FOREIGN KEY (site_id, image_id) REFERENCES media (site_id, id)
);
CREATE UNIQUE INDEX organizers_slug ON organizers (site_id, slug) WHERE slug <> '';
CREATE INDEX organizers_list ON organizers (site_id, date_utc DESC, id DESC) INCLUDE (status);
CREATE INDEX organizers_title ON organizers (site_id, title) WHERE length(title) < 500;
CREATE INDEX organizers_search ON organizers USING gin (site_id, search_text gin_trgm_ops);

-- Keys of the month of an instant and of the 10, 100, … months around it, so that a few keys cover any period.
CREATE FUNCTION month_keys(moment timestamptz) RETURNS int[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT ARRAY[m, 1000000 + m / 10, 2000000 + m / 100, 3000000 + m / 1000, 4000000 + m / 10000]
    FROM (SELECT (12 * extract(year FROM moment AT TIME ZONE 'UTC')
        + extract(month FROM moment AT TIME ZONE 'UTC') - 1)::int AS m) AS month
$$;

CREATE TABLE events (
    site_id            bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    id                 bigint NOT NULL,
    uid                uuid NOT NULL,
    revision           bigint NOT NULL,
    post_parent        bigint,
    author             bigint NOT NULL,
    status             text NOT NULL CHECK (status IN ('publish', 'draft', 'pending', 'private', 'future', 'trash')),
    trashed_status     text NOT NULL DEFAULT '',
    trashed_at         timestamptz,
    slug               text NOT NULL DEFAULT '' CHECK (length(slug) <= 220),
    date_utc           timestamptz NOT NULL,
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
    -- Duration class: 0 below an hour, then doubling. An event of class n that runs at an instant began less than
    -- 2^n hours before it, so running events are found without reading all past events.
    span               smallint NOT NULL GENERATED ALWAYS AS (
                           width_bucket(extract(epoch FROM end_utc - start_utc), ARRAY[
                               3600, 7200, 14400, 28800, 57600, 115200, 230400, 460800, 921600, 1843200,
                               3686400, 7372800, 14745600, 29491200, 58982400, 117964800, 235929600,
                               471859200, 943718400, 1887436800, 3774873600, 7549747200, 15099494400,
                               30198988800, 60397977600, 120795955200, 241591910400]::numeric[])) STORED,
    -- The start, for the index of words, so that a search does not read past events.
    months             int[] NOT NULL GENERATED ALWAYS AS (month_keys(start_utc)) STORED,
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
    PRIMARY KEY (site_id, id),
    FOREIGN KEY (site_id, author) REFERENCES users (site_id, id),
    FOREIGN KEY (site_id, image_id) REFERENCES media (site_id, id),
    FOREIGN KEY (site_id, post_parent) REFERENCES events (site_id, id) ON DELETE SET NULL (post_parent),
    CHECK (end_utc >= start_utc)
);
CREATE UNIQUE INDEX events_slug ON events (site_id, slug) WHERE slug <> '';
CREATE UNIQUE INDEX events_uid ON events (site_id, uid);
CREATE INDEX events_list ON events (site_id, start_utc, date_utc, id) INCLUDE (end_utc)
    WHERE status = 'publish' AND NOT hide_from_listings;
CREATE INDEX events_all ON events (site_id, start_utc, date_utc, id) INCLUDE (end_utc, status)
    WHERE NOT hide_from_listings;
CREATE INDEX events_end ON events (site_id, end_utc) INCLUDE (status) WHERE NOT hide_from_listings;
CREATE INDEX events_span ON events (site_id, span, start_utc) INCLUDE (end_utc, status)
    WHERE NOT hide_from_listings;
CREATE INDEX events_unpublished ON events (site_id, author, start_utc) WHERE status <> 'publish';
CREATE INDEX events_drafts ON events (site_id, start_utc, date_utc, id) INCLUDE (end_utc, status)
    WHERE status <> 'publish' AND NOT hide_from_listings;
CREATE INDEX events_featured ON events (site_id, start_utc)
    WHERE status = 'publish' AND NOT hide_from_listings AND featured;
CREATE INDEX events_ticketed ON events (site_id, start_utc)
    WHERE status = 'publish' AND NOT hide_from_listings AND ticket_url <> '';
CREATE INDEX events_parent ON events (site_id, post_parent) WHERE post_parent IS NOT NULL;
CREATE INDEX events_image ON events (site_id, image_id) WHERE image_id IS NOT NULL;
CREATE INDEX events_search ON events USING gin (site_id, months, search_text gin_trgm_ops);

-- Links -------------------------------------------------------------------------------------
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

-- Counters ----------------------------------------------------------------------------------

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

CREATE FUNCTION count_event_days() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    -- The transition tables depend on the operation, so the statement is composed here.
    moved text := CASE TG_OP
        WHEN 'INSERT' THEN 'SELECT n.*, 1 AS n FROM new_rows n'
        WHEN 'DELETE' THEN 'SELECT o.*, -1 AS n FROM old_rows o'
        ELSE 'SELECT n.*, 1 AS n FROM new_rows n UNION ALL SELECT o.*, -1 FROM old_rows o' END;
BEGIN
    EXECUTE 'INSERT INTO event_days AS d (site_id, status, day, starts, ends)
        SELECT site_id, status, day, sum(starts), sum(ends)
        FROM (' || moved || ') m
        CROSS JOIN LATERAL (VALUES
            ((m.start_utc AT TIME ZONE ''UTC'')::date, m.n, 0),
            ((m.end_utc AT TIME ZONE ''UTC'')::date, 0, m.n)) AS v (day, starts, ends)
        WHERE NOT m.hide_from_listings
        GROUP BY site_id, status, day
        HAVING sum(starts) <> 0 OR sum(ends) <> 0
        ON CONFLICT (site_id, status, day)
        DO UPDATE SET starts = d.starts + excluded.starts, ends = d.ends + excluded.ends';
    RETURN NULL;
END $$;

CREATE TRIGGER event_days_insert AFTER INSERT ON events
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION count_event_days();
CREATE TRIGGER event_days_update AFTER UPDATE ON events
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_event_days();
CREATE TRIGGER event_days_delete AFTER DELETE ON events
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION count_event_days();

-- The copies in the link tables follow the event.
CREATE FUNCTION copy_event_to_links() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE event_venues SET start_utc = NEW.start_utc, listed = NEW.listed, published = NEW.status = 'publish'
        WHERE site_id = NEW.site_id AND event_id = NEW.id;
    UPDATE event_organizers SET start_utc = NEW.start_utc, listed = NEW.listed, published = NEW.status = 'publish'
        WHERE site_id = NEW.site_id AND event_id = NEW.id;
    UPDATE event_categories SET start_utc = NEW.start_utc, listed = NEW.listed, published = NEW.status = 'publish'
        WHERE site_id = NEW.site_id AND event_id = NEW.id;
    UPDATE event_tags SET start_utc = NEW.start_utc, listed = NEW.listed, published = NEW.status = 'publish'
        WHERE site_id = NEW.site_id AND event_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER event_links_follow AFTER UPDATE ON events FOR EACH ROW
    WHEN (OLD.start_utc <> NEW.start_utc OR OLD.listed <> NEW.listed OR OLD.status <> NEW.status)
    EXECUTE FUNCTION copy_event_to_links();

-- The count of a term follows its links. Arguments: table of the terms, column of the link.
CREATE FUNCTION count_term_events() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moved text := CASE TG_OP
        WHEN 'INSERT' THEN 'SELECT n.*, 1 AS n FROM new_rows n'
        WHEN 'DELETE' THEN 'SELECT o.*, -1 AS n FROM old_rows o'
        ELSE 'SELECT n.*, 1 AS n FROM new_rows n UNION ALL SELECT o.*, -1 FROM old_rows o' END;
BEGIN
    EXECUTE format('UPDATE %1$I t SET count = t.count + c.n
        FROM (SELECT site_id, %2$I AS id, sum(n) AS n FROM (' || moved || ') m
              WHERE published GROUP BY site_id, %2$I HAVING sum(n) <> 0) c
        WHERE t.site_id = c.site_id AND t.id = c.id', TG_ARGV[0], TG_ARGV[1]);
    RETURN NULL;
END $$;

CREATE TRIGGER category_count_insert AFTER INSERT ON event_categories
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_term_events('categories', 'category_id');
CREATE TRIGGER category_count_update AFTER UPDATE ON event_categories
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_term_events('categories', 'category_id');
CREATE TRIGGER category_count_delete AFTER DELETE ON event_categories
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_term_events('categories', 'category_id');
CREATE TRIGGER tag_count_insert AFTER INSERT ON event_tags
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_term_events('tags', 'tag_id');
CREATE TRIGGER tag_count_update AFTER UPDATE ON event_tags
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_term_events('tags', 'tag_id');
CREATE TRIGGER tag_count_delete AFTER DELETE ON event_tags
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_term_events('tags', 'tag_id');

-- The change log ----------------------------------------------------------------------------

CREATE TABLE changes (
    site_id   bigint NOT NULL REFERENCES sites (id) ON DELETE CASCADE,
    revision  bigint NOT NULL,
    kind      text NOT NULL,
    record_id bigint NOT NULL,
    action    text NOT NULL CHECK (action IN ('create', 'update', 'trash', 'restore', 'delete', 'settings')),
    user_id   bigint,
    at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (site_id, revision)
);
CREATE INDEX changes_of_record ON changes (site_id, kind, record_id, revision);

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

-- Row-level security ------------------------------------------------------------------------
-- The server switches to kalends_app in every transaction. That role owns nothing and sees only the rows of the
-- site that the transaction has entered.

DO $$
DECLARE
    name text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'kalends_app') THEN
        CREATE ROLE kalends_app NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- Roles belong to the whole cluster: another database was migrated concurrently.
END $$;

DO $$
DECLARE
    name text;
BEGIN
    EXECUTE format('GRANT kalends_app TO %I', current_user);
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO kalends_app', current_schema());
    FOREACH name IN ARRAY ARRAY['users', 'application_passwords', 'categories', 'tags', 'media', 'venues',
        'organizers', 'events', 'event_venues', 'event_organizers', 'event_categories', 'event_tags',
        'event_days', 'changes', 'idempotency'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY site_fence ON %I TO kalends_app
            USING (site_id = current_setting(''kalends.site_id'')::bigint)
            WITH CHECK (site_id = current_setting(''kalends.site_id'')::bigint)', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO kalends_app', name);
    END LOOP;
    ALTER TABLE sites ENABLE ROW LEVEL SECURITY;
    CREATE POLICY site_fence ON sites TO kalends_app
        USING (id = current_setting('kalends.site_id')::bigint);
    GRANT SELECT, UPDATE ON sites TO kalends_app;
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

-- Enters a site by host. With a single site every host belongs to it.
CREATE FUNCTION enter_site(asked_host text) RETURNS SETOF sites
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    found bigint;
BEGIN
    SELECT h.site_id INTO found FROM site_hosts h WHERE h.host = asked_host;
    IF found IS NULL THEN
        SELECT min(s.id) INTO found FROM (SELECT id FROM sites LIMIT 2) s HAVING count(*) = 1;
    END IF;
    PERFORM set_config('kalends.site_id', coalesce(found, 0)::text, true);
    RETURN QUERY SELECT * FROM sites WHERE id = found;
END $$;
REVOKE ALL ON FUNCTION enter_site(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION enter_site(text) TO kalends_app;
