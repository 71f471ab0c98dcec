-- Every statement that adds or changes rows checks the primary key, and either changes all rows or none.

CREATE TABLE lance.t (id INTEGER PRIMARY KEY, n INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20);
--> 2
CREATE TABLE lance.s (id INTEGER, n INTEGER);
INSERT INTO s VALUES (3, 30), (4, 40), (2, 21);
--> 3

--= a key of the table is refused

INSERT INTO t VALUES (3, 30), (2, 21);
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
INSERT INTO t SELECT * FROM s;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
INSERT INTO t BY NAME SELECT 2 AS id;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
INSERT INTO t (n, id) VALUES (5, 2);
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
INSERT INTO t VALUES (2, 0) RETURNING id;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
INSERT INTO t FROM t WHERE id = 2;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
INSERT INTO t WITH w AS (FROM s) FROM w;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
INSERT INTO t (id) SELECT 4 - id FROM t;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
UPDATE t SET id = 2 WHERE id = 1;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
UPDATE t SET id = s.id FROM s WHERE s.id = 2 AND t.id = 1;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
UPDATE t SET (id, n) = (2, 0) WHERE n = 10;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
UPDATE t SET id = 2 WHERE id = 1 RETURNING *;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
MERGE INTO t USING s ON t.n = s.n WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n);
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
MERGE INTO t USING s ON t.id + 1 = s.id AND s.id = 2 WHEN MATCHED THEN UPDATE SET id = 2;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 1;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET id = 2;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
MERGE INTO t USING (SELECT 9 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id - 7);
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
FROM t ORDER BY id;
--> 1 | 10
--> 2 | 20

--= a key that the statement itself repeats is refused

INSERT INTO t VALUES (3, 30), (3, 31);
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
INSERT INTO t SELECT 7, range FROM range(2);
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
UPDATE t SET id = 5;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
UPDATE t SET id = 5 WHERE n > 5;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
MERGE INTO t USING (FROM s UNION ALL FROM s) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT;
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (8);
--! DuplicateKeyError: table t: Duplicate key "id: …" violates primary key constraint
FROM t ORDER BY id;
--> 1 | 10
--> 2 | 20

--= a null key is refused

INSERT INTO t VALUES (NULL, 1);
--! null
INSERT INTO t (n) VALUES (1);
--! null
UPDATE t SET id = NULL;
--! null
INSERT INTO t DEFAULT VALUES;
--! null
INSERT INTO t SELECT NULL, 5;
--! null
FROM t ORDER BY id;
--> 1 | 10
--> 2 | 20

INSERT OR REPLACE INTO t VALUES (NULL, 1);
--! NOT NULL constraint failed: t.id

--= keys may move to rows of the same statement

UPDATE t SET id = id + 1;
--> 2
UPDATE t SET id = 5 - id WHERE id IN (2, 3);
--> 2
UPDATE t SET id = id;
--> 2
FROM t ORDER BY id;
--> 2 | 20
--> 3 | 10

--= ON CONFLICT, OR REPLACE and OR IGNORE accept existing keys

INSERT OR IGNORE INTO t VALUES (1, 11), (3, 30);
--> 1
INSERT OR REPLACE INTO t VALUES (1, 11), (4, 40);
--> 2
INSERT INTO t VALUES (2, 22), (5, 50) ON CONFLICT (id) DO UPDATE SET n = excluded.n;
--> 2
INSERT INTO t VALUES (2, 23), (6, 60) ON CONFLICT DO NOTHING;
--> 1
FROM t ORDER BY id;
--> 1 | 11
--> 2 | 22
--> 3 | 30
--> 4 | 40
--> 5 | 50
--> 6 | 60

--= a transaction sees its own keys

BEGIN;
INSERT INTO t VALUES (3, 30);
--> 1
INSERT INTO t VALUES (3, 31);
--! DuplicateKeyError: table t: Duplicate key "id: 3" violates primary key constraint
ROLLBACK;
BEGIN;
UPDATE t SET id = 7 WHERE id = 1;
--> 1
INSERT INTO t VALUES (7, 0);
--! DuplicateKeyError: table t: Duplicate key "id: 7" violates primary key constraint
ROLLBACK;
FROM t ORDER BY id;
--> 1 | 10
--> 2 | 20

--= a key that a transaction deletes or changes is free again

BEGIN;
DELETE FROM t WHERE id = 1;
--> 1
INSERT INTO t VALUES (1, 11);
--> 1
COMMIT;
FROM t ORDER BY id;
--> 1 | 11
--> 2 | 20

--= a key that another connection commits first is refused

BEGIN;
INSERT INTO t VALUES (3, 30);
--> 1
--on other
INSERT INTO t VALUES (3, 31);
--> 1
COMMIT;
--! RetryableError: … a concurrent commit inserted a row with the same key
--on other
FROM t ORDER BY id;
--> 1 | 10
--> 2 | 20
--> 3 | 31

--= composite keys are compared as a whole

CREATE TABLE lance.c (a INTEGER, b VARCHAR, n INTEGER, PRIMARY KEY (a, b));
INSERT INTO c VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', 3);
--> 3
INSERT INTO c VALUES (3, 'x', 4), (2, 'x', 5);
--! DuplicateKeyError: table c: Duplicate key "a: 2, b: x" violates primary key constraint
UPDATE c SET b = 'y' WHERE a = 1 AND b = 'x';
--! DuplicateKeyError: table c: Duplicate key "a: 1, b: y" violates primary key constraint
UPDATE c SET a = 2 WHERE b = 'x';
--! DuplicateKeyError: table c: Duplicate key "a: 2, b: x" violates primary key constraint
UPDATE c SET a = a + 1;
--> 3
INSERT INTO c VALUES (1, 'x', 4), (3, NULL, 5);
--! null
FROM c ORDER BY ALL;
--> 2 | x | 1
--> 2 | y | 2
--> 3 | x | 3

--= zeros of both signs are one key, and so are all NaN

CREATE TABLE lance.f (x DOUBLE PRIMARY KEY);
INSERT INTO f VALUES ('0.0'), ('nan'), (1);
--> 3
INSERT INTO f VALUES ('-0.0');
--! DuplicateKeyError: table f: Duplicate key "x: 0.0" violates primary key constraint
INSERT INTO f VALUES ('-nan');
--! DuplicateKeyError: table f: Duplicate key "x: nan" violates primary key constraint
UPDATE f SET x = -x WHERE x = 0;
--> 1
UPDATE f SET x = 'nan' WHERE x = 1;
--! DuplicateKeyError: table f: Duplicate key "x: nan" violates primary key constraint

--= rows from files are checked

COPY (SELECT 5 AS id, 50 AS n UNION ALL SELECT 2, 21) TO '{folder}/rows.csv';
--> 2
COPY t FROM '{folder}/rows.csv';
--! DuplicateKeyError: table t: Duplicate key "id: 2" violates primary key constraint
INSERT INTO t FROM '{folder}/rows.csv';
--! DuplicateKeyError: table t: Duplicate key "id: 2" violates primary key constraint
FROM t ORDER BY id;
--> 1 | 10
--> 2 | 20
