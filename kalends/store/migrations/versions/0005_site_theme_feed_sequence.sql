-- Theme of the public pages, and SEQUENCE and cancellation of events in calendar feeds.

ALTER TABLE sites
    ADD COLUMN logo_url      text NOT NULL DEFAULT '',
    ADD COLUMN accent        text NOT NULL DEFAULT '#b3341e' CHECK (accent ~ '^#[0-9a-f]{6}$'),
    -- 1 is Monday, 7 is Sunday.
    ADD COLUMN first_weekday smallint NOT NULL DEFAULT 1 CHECK (first_weekday BETWEEN 1 AND 7),
    ADD COLUMN default_view  text NOT NULL DEFAULT 'month'
                             CHECK (default_view IN ('month', 'week', 'day', 'list', 'map'));

-- The revision of the last change of time, place or status. The SEQUENCE of an event in a feed is the maximum of its
-- own value and those of its venues, so it never decreases.
ALTER TABLE events ADD COLUMN sequence bigint NOT NULL DEFAULT 0;
ALTER TABLE venues ADD COLUMN sequence bigint NOT NULL DEFAULT 0;

-- When an event stopped being public; null while it is public, or if it never was.
ALTER TABLE events ADD COLUMN withdrawn_at timestamptz;
CREATE INDEX events_withdrawn ON events (site_id, withdrawn_at) WHERE withdrawn_at IS NOT NULL;
