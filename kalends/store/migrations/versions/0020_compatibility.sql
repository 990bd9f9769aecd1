-- `kalends migrate` inserts the declarations of kalends/store/migrations/compatibility.py.
CREATE TABLE schema_compatibility (
    revision text PRIMARY KEY,
    oldest_code text NOT NULL
);
GRANT SELECT ON schema_compatibility TO kalends_app;
