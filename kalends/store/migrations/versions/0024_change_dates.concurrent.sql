CREATE INDEX CONCURRENTLY IF NOT EXISTS changes_date ON changes (changed_at);
