-- DuckDB 1 and 2.0.1 do otherwise: they count and return each match, and take the last in MERGE. Compared with 2.0.0 alone.
UPDATE t SET a = (a IS DISTINCT FROM id)::INT FROM u WHERE u.id = t.id AND u.b < 200
UPDATE t SET a = u.b FROM u WHERE u.id = t.id
UPDATE t SET a = u.b FROM u
UPDATE t SET a = 1 FROM u WHERE id = 1
UPDATE t SET a = t.id FROM u WHERE u.id = t.id RETURNING *
UPDATE t SET a = v FROM (VALUES (1, 10), (1, 20), (2, 30), (2, 40)) AS q(k, v) WHERE k = id
UPDATE t SET a = v FROM (VALUES (1, 20), (1, 10), (1, 15)) AS q(k, v) WHERE k = id
UPDATE t SET a = v FROM (VALUES (1, 20), (1, 10), (1, 15)) AS q(k, v) WHERE k = id RETURNING id, a
UPDATE t SET a = v FROM (VALUES (20), (10), (15)) AS q(v)
UPDATE t SET a = v FROM (VALUES (20), (10), (15)) AS q(v) WHERE v < id * 12
UPDATE t SET a = b FROM u WHERE u.id < t.id
UPDATE t SET l = [b] FROM u WHERE u.id = t.id
UPDATE t SET a = u.b FROM u WHERE u.id = t.id AND u.b IN (100, 101)
MERGE INTO t USING v ON t.id < v.id WHEN MATCHED THEN UPDATE SET s = 'less'
MERGE INTO t USING v ON true WHEN MATCHED THEN DELETE
MERGE INTO t USING v ON t.id = v.id WHEN MATCHED AND to_json(t)::VARCHAR LIKE '%two%' THEN DELETE
MERGE INTO t USING u ON t.id = u.id WHEN MATCHED AND t.a > 1000 THEN UPDATE SET a = 1 WHEN NOT MATCHED THEN INSERT (id) VALUES (u.id)
MERGE INTO t USING t ON true WHEN MATCHED THEN DELETE
UPDATE ONLY t SET a = 1
