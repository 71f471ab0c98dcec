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
