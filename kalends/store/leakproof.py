"""The LEAKPROOF marks of functions that search indexes need (decision 0004). A restored dump lacks them."""

from typing import Final

# Returns a statement for each function that is not marked. Comparisons of texts, overlaps and distances.
FIND_MISSING: Final = """
    SELECT 'ALTER FUNCTION ' || p.oid::regprocedure || ' LEAKPROOF;' AS statement
    FROM unnest(ARRAY[
        to_regprocedure('pg_catalog.textlike(text, text)'),
        to_regprocedure('pg_catalog.textnlike(text, text)'),
        to_regprocedure('pg_catalog.arrayoverlap(anyarray, anyarray)'),
        to_regprocedure('st_dwithin(geography, geography, double precision, boolean)'),
        to_regprocedure('geography_overlaps(geography, geography)')]) AS f (oid)
    JOIN pg_proc p ON p.oid = f.oid
    WHERE NOT p.proleakproof
    ORDER BY 1
"""
