-- The dominant hue of an image in 24 steps; -1: gray; null: not computed yet.
ALTER TABLE media ADD COLUMN IF NOT EXISTS hue smallint CHECK (hue BETWEEN -1 AND 23);

-- The last time the user opened the console's start page; null: never.
ALTER TABLE users ADD COLUMN IF NOT EXISTS home_seen_at timestamptz;

-- Sites that are in use keep the calendar at `/`; the others get the front page.
ALTER TABLE sites ADD COLUMN IF NOT EXISTS start_page text NOT NULL DEFAULT 'calendar'
    CHECK (start_page IN ('front', 'calendar'));
ALTER TABLE sites ALTER COLUMN start_page SET DEFAULT 'front';
UPDATE sites SET start_page = 'front' WHERE revision = 0;
GRANT UPDATE (start_page) ON sites TO kalends_app;
