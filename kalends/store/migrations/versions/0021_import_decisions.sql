-- Imports: decisions on possible duplicates, and e-mail addresses of organizers in calendars.

-- The events that people have declared different from the record of the row, before that record existed.
ALTER TABLE import_rows ADD COLUMN different_from bigint[] NOT NULL DEFAULT '{}';

-- Calendars name organizers with their e-mail addresses, which are often private.
ALTER TABLE import_sources ADD COLUMN organizer_emails boolean NOT NULL DEFAULT false;
