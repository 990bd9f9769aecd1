CREATE INDEX CONCURRENTLY IF NOT EXISTS import_rows_different ON import_rows (site_id, run_id)
    WHERE different_from <> '{}';
