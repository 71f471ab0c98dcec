-- BEGIN … COMMIT and ROLLBACK.

CREATE TABLE lance.t AS SELECT range AS id FROM range(3);
--> 3

BEGIN;

DELETE FROM t WHERE id = 0;
--> 1

INSERT INTO t VALUES (7);
--> 1

UPDATE t SET id = id + 1 WHERE id = 7;
--> 1

-- A transaction sees what it changed.
FROM t ORDER BY id;
--> 1
--> 2
--> 8

ROLLBACK;

FROM t ORDER BY id;
--> 0
--> 1
--> 2

BEGIN TRANSACTION;

DELETE FROM t WHERE id = 1;
--> 1

MERGE INTO t USING (VALUES (2), (5)) s(id) USING (id) WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT;
--> 2

COMMIT;

FROM t ORDER BY id;
--> 0
--> 5

-- One of the statements fails: nothing is left of any.
BEGIN;

DELETE FROM t;
--> 2

INSERT INTO t VALUES ('x');
--! x

ROLLBACK;

FROM t ORDER BY id;
--> 0
--> 5

COMMIT;
--! no transaction is active

-- All changes of a transaction are one version.
--only lance
CREATE OR REPLACE TABLE lance.v AS SELECT 1 AS id;
--> 1

--only lance
BEGIN;

--only lance
INSERT INTO v VALUES (2);
--> 1

--only lance
DELETE FROM v WHERE id = 1;
--> 1

--only lance
COMMIT;

--only lance
SELECT count(*) FROM v AT (VERSION => 1);
--> 1

--only lance
FROM v AT (VERSION => 2);
--> 2

-- What takes no alias reads a qualified name, too.
BEGIN;

INSERT INTO lance.t VALUES (70);
--> 1

SELECT column_name, column_type FROM (DESCRIBE lance.t);
--> id | BIGINT

SELECT max FROM (SUMMARIZE lance.t);
--> 70

TABLE lance.t ORDER BY id DESC LIMIT 1;
--> 70

COPY lance.t TO '{folder}/t.csv';
--> 3

ROLLBACK;

-- ALTER TABLE and COMMENT ON belong to the transaction.
CREATE TABLE lance.w AS SELECT range AS a, 'w' || range AS b FROM range(4);
--> 4

BEGIN;

ALTER TABLE w ADD COLUMN z INTEGER;

UPDATE w SET z = a + 10 WHERE a > 1;
--> 2

INSERT INTO w VALUES (7, 'seven', 17) RETURNING z;
--> 17

ALTER TABLE w RENAME b TO c;

ALTER TABLE w DROP COLUMN a;

COMMENT ON TABLE w IS 'altered';

ALTER TABLE w ADD COLUMN d VARCHAR DEFAULT 'new';

FROM w ORDER BY c;
--> seven | 17 | new
--> w0 | NULL | new
--> w1 | NULL | new
--> w2 | 12 | new
--> w3 | 13 | new

SELECT column_name, column_type FROM (DESCRIBE w);
--> c | VARCHAR
--> z | INTEGER
--> d | VARCHAR

SELECT a FROM w;
--! "a" not found

ROLLBACK;

FROM w ORDER BY a LIMIT 1;
--> 0 | w0

BEGIN;

ALTER TABLE w DROP COLUMN a;

UPDATE w SET b = 'x' WHERE b = 'w0';
--> 1

COMMENT ON COLUMN w.b IS 'letters';

COMMIT;

FROM w ORDER BY b;
--> w1
--> w2
--> w3
--> x

SELECT comment FROM duckdb_columns() WHERE table_name = 'w' AND column_name = 'b';
--> letters
