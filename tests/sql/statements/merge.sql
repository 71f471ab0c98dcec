-- MERGE INTO: rows that match, and rows that do not.

CREATE TABLE lance.t AS FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c')) v(id, name);
--> 3

MERGE INTO t USING (VALUES (2, 'two'), (4, 'four')) s(id, name) ON t.id = s.id
WHEN MATCHED THEN UPDATE SET name = s.name
WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name);
--> 2

MERGE INTO t USING (SELECT 3 AS id, 'x' AS name UNION ALL SELECT 5, 'y') s USING (id)
WHEN MATCHED AND s.name = 'x' THEN DELETE
WHEN MATCHED THEN UPDATE
WHEN NOT MATCHED THEN INSERT;
--> 2

FROM t ORDER BY id;
--> 1 | a
--> 2 | two
--> 4 | four
--> 5 | y

MERGE INTO t USING (VALUES (1), (2)) s(id) ON t.id = s.id
WHEN MATCHED AND t.id = 1 THEN DO NOTHING
WHEN MATCHED THEN UPDATE SET name = upper(t.name)
WHEN NOT MATCHED BY SOURCE AND t.id > 4 THEN DELETE
WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = 'kept';
--> 3

FROM t ORDER BY id;
--> 1 | a
--> 2 | TWO
--> 4 | kept

MERGE INTO t USING (VALUES (1, 'r'), (9, 'n')) s(id, name) USING (id)
WHEN MATCHED THEN UPDATE SET name = s.name
WHEN NOT MATCHED THEN INSERT
RETURNING merge_action, id, name;
--> INSERT | 9 | n
--> UPDATE | 1 | r

MERGE INTO t USING (VALUES (1, 'e')) s(id, name) USING (id) WHEN MATCHED THEN ERROR;
--! Merge error

MERGE INTO t USING (VALUES (100)) s(id) USING (id) WHEN MATCHED THEN DELETE;
--> 0

-- DuckDB 1 takes one of several rows of the source for a row of its own tables.
--only lance
MERGE INTO t USING (VALUES (1, 'x'), (1, 'y')) s(id, name) USING (id) WHEN MATCHED THEN UPDATE;
--! source

FROM t ORDER BY id;
--> 1 | r
--> 2 | TWO
--> 4 | kept
--> 9 | n

-- Sources of types that Arrow lacks.
CREATE TABLE lance.kinds (id INTEGER, u UUID, h DECIMAL(38, 0));

MERGE INTO lance.kinds AS t
USING (SELECT 1 AS id, '11111111-1111-1111-1111-111111111111'::UUID AS u, 7::HUGEINT AS h) AS q USING (id)
WHEN NOT MATCHED AND typeof(q.u) = 'UUID' AND typeof(q.h) = 'HUGEINT'
THEN INSERT (id, u, h) VALUES (q.id, coalesce(q.u, '22222222-2222-2222-2222-222222222222'::UUID), q.h);
--> 1

CREATE TABLE lance.pairs AS SELECT 1 AS id, {'x': 1, 'y': 'a'} AS st;
--> 1

--only duckdb 2
MERGE INTO lance.pairs AS t USING (SELECT 1 AS id, row(2, 'b') AS st) AS q USING (id)
WHEN MATCHED THEN UPDATE SET st = q.st RETURNING st.x, st.y;
--> 2 | b
