-- The state of an event and its currency.

ALTER TABLE events
    -- Whether the event takes place as announced. Unlike `status`, it does not affect who sees the event.
    ADD COLUMN event_status        text NOT NULL DEFAULT 'scheduled'
                                   CHECK (event_status IN
                                       ('scheduled', 'cancelled', 'postponed', 'moved_online', 'sold_out')),
    ADD COLUMN status_reason       text NOT NULL DEFAULT '' CHECK (length(status_reason) <= 2000),
    ADD COLUMN online_url          text NOT NULL DEFAULT '',
    -- Null: that of the site.
    ADD COLUMN currency_symbol     text CHECK (length(currency_symbol) <= 16),
    ADD COLUMN currency_code       text CHECK (length(currency_code) <= 3),
    ADD COLUMN currency_position   text CHECK (currency_position IN ('prefix', 'postfix'));

-- Finds the few events that do not take place as announced.
CREATE INDEX events_changed_state ON events (site_id, event_status, start_utc) WHERE event_status <> 'scheduled';

-- For lists by date of publication, such as `wp/v2/tribe_events`.
CREATE INDEX events_published ON events (site_id, published_at, id)
    WHERE status = 'publish' AND NOT hide_from_listings;
