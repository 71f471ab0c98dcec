-- INSERT … ON CONFLICT, OR REPLACE and OR IGNORE on tables that hold a key repeatedly.

CREATE TABLE lance.t (id INTEGER, n INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20), (1, 11), (NULL, 5), (NULL, 6);
--> 5

--= rows whose key is there repeatedly are left out

CREATE TABLE lance.k (id INTEGER PRIMARY KEY, n INTEGER);
SET lance_check_primary_key = false;
INSERT INTO k VALUES (1, 10), (1, 11), (2, 20);
--> 3
RESET lance_check_primary_key;
INSERT OR IGNORE INTO k VALUES (1, 99), (3, 30), (2, 99), (3, 31), (1, 98);
--> 1
FROM k ORDER BY ALL;
--> 1 | 10
--> 1 | 11
--> 2 | 20
--> 3 | 30
INSERT OR IGNORE INTO k VALUES (1, 0), (4, 40) RETURNING id, n;
--> 4 | 40
INSERT OR IGNORE INTO k SELECT id, 7 FROM k;
--> 0
FROM k ORDER BY ALL;
--> 1 | 10
--> 1 | 11
--> 2 | 20
--> 3 | 30
--> 4 | 40
INSERT INTO k VALUES (1, 99), (5, 30), (2, 99), (5, 31), (1, 98) ON CONFLICT (id) DO NOTHING;
--> 1
FROM k ORDER BY ALL;
--> 1 | 10
--> 1 | 11
--> 2 | 20
--> 3 | 30
--> 4 | 40
--> 5 | 30
INSERT INTO k VALUES (1, 0), (6, 40) ON CONFLICT (id) DO NOTHING RETURNING id, n;
--> 6 | 40
INSERT INTO k SELECT id, 7 FROM k ON CONFLICT (id) DO NOTHING;
--> 0
FROM k ORDER BY ALL;
--> 1 | 10
--> 1 | 11
--> 2 | 20
--> 3 | 30
--> 4 | 40
--> 5 | 30
--> 6 | 40

--= null keys never conflict

INSERT INTO t VALUES (NULL, 7), (1, 0) ON CONFLICT (id) DO NOTHING;
--> 1
FROM t ORDER BY ALL;
--> 1 | 10
--> 1 | 11
--> 2 | 20
--> NULL | 5
--> NULL | 6
--> NULL | 7

--= updates of a repeated key are refused with a query that finds it
--each sql: INSERT INTO t VALUES (3, 30), (1, 99) ON CONFLICT (id) DO UPDATE SET n = excluded.n
--each sql: INSERT INTO t VALUES (1, 99) ON CONFLICT (id) DO UPDATE SET n = 0 RETURNING *
--each sql: INSERT INTO t BY NAME SELECT 1 AS id, 2 AS n ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n

{sql};
--! InvalidInputError: … table t … 2 rows with id = 1; find the duplicates with SELECT "id", count(*) FROM "t" GROUP BY "id" HAVING count(*) > 1
FROM t ORDER BY ALL;
--> 1 | 10
--> 1 | 11
--> 2 | 20
--> NULL | 5
--> NULL | 6
SELECT "id", count(*) FROM "t" GROUP BY "id" HAVING id IS NOT NULL AND count(*) > 1;
--> 1 | 2

--= OR REPLACE of a repeated primary key is refused

CREATE TABLE lance."t t" ("k k" VARCHAR PRIMARY KEY, n INTEGER);
SET lance_check_primary_key = false;
INSERT INTO "t t" VALUES ('a', 1), ('a', 2), ('b', 3);
--> 3
RESET lance_check_primary_key;
INSERT OR REPLACE INTO "t t" VALUES ('a', 4);
--! InvalidInputError: … 2 rows with k k = 'a'; find the duplicates with SELECT "k k", count(*) FROM "t t" GROUP BY "k k" HAVING count(*) > 1
SELECT "k k", count(*) FROM "t t" GROUP BY "k k" HAVING count(*) > 1;
--> a | 2
INSERT OR REPLACE INTO "t t" VALUES ('b', 5), ('c', 6);
--> 2
FROM "t t" ORDER BY ALL;
--> a | 1
--> a | 2
--> b | 5
--> c | 6

--= other keys are updated beside a repeated one

INSERT INTO t VALUES (2, 99), (3, 30) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n;
--> 2
FROM t ORDER BY ALL;
--> 1 | 10
--> 1 | 11
--> 2 | 119
--> 3 | 30
--> NULL | 5
--> NULL | 6

--= composite keys repeat as a whole

CREATE TABLE lance.c (a INTEGER, b VARCHAR, n INTEGER);
INSERT INTO c VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', 3), (2, 'x', 4), (2, NULL, 5), (2, NULL, 6);
--> 6
INSERT INTO c VALUES (1, 'x', 0), (2, 'x', 0), (2, NULL, 0), (3, 'x', 0) ON CONFLICT (a, b) DO NOTHING;
--> 2
INSERT INTO c VALUES (1, 'y', 7), (2, NULL, 8) ON CONFLICT (b, a) DO UPDATE SET n = excluded.n;
--> 2
FROM c ORDER BY ALL;
--> 1 | x | 1
--> 1 | y | 7
--> 2 | x | 3
--> 2 | x | 4
--> 2 | NULL | 0
--> 2 | NULL | 5
--> 2 | NULL | 6
--> 2 | NULL | 8
--> 3 | x | 0
INSERT INTO c VALUES (2, 'x', 9) ON CONFLICT (a, b) DO UPDATE SET n = excluded.n;
--! InvalidInputError: … 2 rows with a = 2, b = 'x'
FROM c ORDER BY ALL;
--> 1 | x | 1
--> 1 | y | 7
--> 2 | x | 3
--> 2 | x | 4
--> 2 | NULL | 0
--> 2 | NULL | 5
--> 2 | NULL | 6
--> 2 | NULL | 8
--> 3 | x | 0

--= transactions go on

BEGIN;
INSERT INTO t VALUES (1, 0), (3, 30) ON CONFLICT (id) DO NOTHING;
--> 1
COMMIT;
FROM t ORDER BY ALL;
--> 1 | 10
--> 1 | 11
--> 2 | 20
--> 3 | 30
--> NULL | 5
--> NULL | 6

--= MERGE and UPDATE check only the keys that they change

CREATE TABLE lance.m (k INTEGER PRIMARY KEY, x INTEGER);
SET lance_check_primary_key = false;
INSERT INTO m VALUES (1, 1), (1, 2), (2, 3);
--> 3
RESET lance_check_primary_key;
MERGE INTO m USING (VALUES (1, 5)) v(a, b) ON k = a WHEN MATCHED THEN UPDATE SET x = x + b;
--> 2
MERGE INTO m USING (VALUES (1, 8), (3, 9)) v(k, x) ON m.k = v.k
    WHEN MATCHED THEN UPDATE SET k = v.k WHEN NOT MATCHED THEN INSERT;
--> 3
MERGE INTO m USING (VALUES (9)) v(a) ON k = a WHEN NOT MATCHED BY SOURCE AND k = 1 THEN UPDATE SET x = x + 1;
--> 2
UPDATE m SET k = k WHERE x < 9;
--> 3
FROM m ORDER BY ALL;
--> 1 | 7
--> 1 | 8
--> 2 | 3
--> 3 | 9
MERGE INTO m USING (VALUES (7, 2)) v(a, b) ON x = a WHEN MATCHED THEN UPDATE SET k = b;
--! DuplicateKeyError: table m: Duplicate key "k: 2" violates primary key constraint
MERGE INTO m USING (VALUES (2, 1)) v(a, b) ON k = a WHEN MATCHED THEN UPDATE SET k = b;
--! DuplicateKeyError: table m: Duplicate key "k: 1" violates primary key constraint
MERGE INTO m USING (VALUES (1, 70)) v(a, b) ON x = b WHEN NOT MATCHED THEN INSERT VALUES (a, b);
--! DuplicateKeyError: table m: Duplicate key "k: 1" violates primary key constraint
UPDATE m SET k = 1;
--! DuplicateKeyError: table m: Duplicate key "k: 1" violates primary key constraint
UPDATE m SET k = 4 WHERE k = 1;
--! DuplicateKeyError: table m: Duplicate key "k: 4" violates primary key constraint
MERGE INTO m USING (VALUES (7, 4)) v(a, b) ON x = a WHEN MATCHED THEN UPDATE SET k = b;
--> 1
UPDATE m SET k = 3 - k WHERE k IN (1, 2);
--> 2
FROM m ORDER BY ALL;
--> 1 | 3
--> 2 | 8
--> 3 | 9
--> 4 | 7
