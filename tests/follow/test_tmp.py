import psycopg
from tests.follow.follow_client import *
def test_plan(site):
    add_people(site, 2000, due=False)
    with psycopg.connect(site.database_url, autocommit=True) as c:
        c.execute("INSERT INTO sites (id) SELECT n FROM generate_series(2, 200) n")
        c.execute("VACUUM ANALYZE")
        inner = c.execute("SELECT prosrc FROM pg_proc WHERE proname = 'due_follows'").fetchone()[0].replace("cutoff", "now()").replace("most", "500")
        for text in (inner, "SELECT * FROM due_follows(now(), 500)", "SELECT * FROM due_imports(100)", "SELECT * FROM due_proposals(now(), 100)"):
            for _ in range(3):
                rows = c.execute("EXPLAIN (ANALYZE, BUFFERS) " + text).fetchall()
            print("\n".join(r[0] for r in rows)); print("=====")
    assert 0
