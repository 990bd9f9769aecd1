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
CREATE OR REPLACE FUNCTION enter_site(asked_host text) RETURNS SETOF sites
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
CREATE OR REPLACE FUNCTION enter_site_number(asked bigint) RETURNS SETOF sites
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

-- CREATE OR REPLACE keeps owner and grants, but not the settings of a function.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['enter_site(text)', 'enter_site_number(bigint)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', name, current_schema());
    END LOOP;
END $$;
