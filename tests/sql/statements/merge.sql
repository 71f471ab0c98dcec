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
