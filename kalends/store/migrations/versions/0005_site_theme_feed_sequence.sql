-- Public pages and feeds: how a site looks, and what calendars of subscribers must be told.

ALTER TABLE sites
    ADD COLUMN logo_url      text NOT NULL DEFAULT '',
    ADD COLUMN accent        text NOT NULL DEFAULT '#b3341e' CHECK (accent ~ '^#[0-9a-f]{6}$'),
    -- 1 is Monday, 7 is Sunday.
    ADD COLUMN first_weekday smallint NOT NULL DEFAULT 1 CHECK (first_weekday BETWEEN 1 AND 7),
    ADD COLUMN default_view  text NOT NULL DEFAULT 'month'
                             CHECK (default_view IN ('month', 'week', 'day', 'list', 'map'));

-- The revision at which the time, the place or the status last changed. The SEQUENCE of an event in a feed is
-- the highest of its own and those of its venues: whatever links change, it never falls.
ALTER TABLE events ADD COLUMN sequence bigint NOT NULL DEFAULT 0;
ALTER TABLE venues ADD COLUMN sequence bigint NOT NULL DEFAULT 0;

-- When an event stopped being shown to everybody; null while it is, or where it never was.
ALTER TABLE events ADD COLUMN withdrawn_at timestamptz;
CREATE INDEX events_withdrawn ON events (site_id, withdrawn_at) WHERE withdrawn_at IS NOT NULL;
