-- The check of primary keys, in forms that native tables do not have.

CREATE TABLE lance.t (id INTEGER PRIMARY KEY, n INTEGER);
INSERT INTO t VALUES (1, 10), (2, 20);
--> 2

--= COPY … TO checks appended rows

COPY (SELECT 3 AS id, 30 AS n UNION ALL SELECT 2, 21) TO '{folder}/t.lance' (MODE 'append');
--! DuplicateKeyError: table t: Duplicate key "id: 2" violates primary key constraint
COPY (SELECT 3 AS id, range AS n FROM range(2)) TO '{folder}/t.lance' (MODE 'append');
--! DuplicateKeyError: table t: Duplicate key "id: 3" violates primary key constraint
COPY (SELECT 3 AS id, 30 AS n) TO '{folder}/t.lance' (MODE 'append');
--> 1
FROM t ORDER BY id;
--> 1 | 10
--> 2 | 20
--> 3 | 30

--= a path is checked like a name

INSERT INTO '{folder}/t.lance' VALUES (2, 0);
--! DuplicateKeyError: table t: Duplicate key "id: 2" violates primary key constraint

--= an index does not change the check

CREATE INDEX by_id ON t (id);
INSERT INTO t VALUES (3, 30);
--> 1
INSERT INTO t VALUES (2, 0);
--! DuplicateKeyError: table t: Duplicate key "id: 2" violates primary key constraint
INSERT INTO t VALUES (3, 0);
--! DuplicateKeyError: table t: Duplicate key "id: 3" violates primary key constraint
DELETE FROM t WHERE id = 2;
--> 1
INSERT INTO t VALUES (2, 22);
--> 1
FROM t ORDER BY id;
--> 1 | 10
--> 2 | 22
--> 3 | 30

--= a setting turns the check off, and validation finds the duplicates

SET lance_check_primary_key = false;
SELECT current_setting('lance_check_primary_key') AS checked;
--> false
INSERT INTO t VALUES (1, 11), (5, 50), (5, 51), (5, 52);
--> 4
UPDATE t SET id = 1 WHERE id = 2;
--> 1
COPY (SELECT 1 AS id, 12 AS n) TO '{folder}/t.lance' (MODE 'append');
--> 1
CALL lance.validate('t');
--> primary key | 2 keys occur in several rows (7 rows), such as "id: 1" in 4 rows
SET lance_check_primary_key TO 'on';
INSERT INTO t VALUES (5, 53);
--! DuplicateKeyError: table t: Duplicate key "id: 5" violates primary key constraint
RESET lance_check_primary_key;
INSERT INTO t VALUES (6, 60);
--> 1
UPDATE t SET n = 0 WHERE id = 5;
--> 3
DELETE FROM t WHERE id IN (1, 5);
--> 7
CALL lance.validate('t');
SET lance_check_primary_key = 2;
--! InvalidInputError: lance_check_primary_key: expected true or false

--= columns change only if keys stay distinct

CREATE TABLE lance.c (a DOUBLE, b INTEGER, n INTEGER, PRIMARY KEY (a, b));
INSERT INTO c VALUES (1, 1, 0), (1, 2, 0), (1.00000000001, 1, 0);
--> 3
ALTER TABLE c DROP COLUMN b;
--! UnsupportedError: table c: a column of a composite primary key cannot be dropped: found a, b
ALTER TABLE c ALTER COLUMN a TYPE FLOAT;
--! UnsupportedError: table c: a primary key cannot get a less precise type: found double to float
ALTER TABLE c ALTER COLUMN b TYPE BIGINT;
ALTER TABLE c RENAME COLUMN b TO id;
INSERT INTO c VALUES (1, 2, 5);
--! DuplicateKeyError: table c: Duplicate key "a: 1.0, id: 2" violates primary key constraint
ALTER TABLE c DROP COLUMN n;
SET lance_check_primary_key = false;
ALTER TABLE c ALTER COLUMN a TYPE FLOAT;
ALTER TABLE c DROP COLUMN id;
CALL lance.validate('c');
--> primary key | 1 key occurs in several rows (3 rows), such as "a: 1.0" in 3 rows

--= a primary key column is dropped only without the check
--each sql: DROP COLUMN id
--each sql: DROP ID CASCADE
--each sql: DROP COLUMN IF EXISTS id

CREATE TABLE lance.d (id INTEGER PRIMARY KEY, n INTEGER, m INTEGER);
ALTER TABLE d {sql};
--! UnsupportedError: table d: a primary key column cannot be dropped: found id; SET lance_check_primary_key = false permits it
ALTER TABLE d DROP COLUMN n;
ALTER TABLE d ALTER COLUMN id TYPE BIGINT;
SET lance_check_primary_key = false;
ALTER TABLE d DROP COLUMN id;
DESCRIBE d;
--> m | INTEGER | YES | NULL | NULL | NULL

--= a null in a primary key names the table, the column and the key

CREATE TABLE lance.e (region VARCHAR PRIMARY KEY, n INTEGER NOT NULL);
INSERT INTO e VALUES ('a', 1);
--> 1
INSERT INTO e VALUES (NULL, 1);
--! DataMismatchError: column 'region', row 0, table e: a non-nullable column contains a null: expected a value in each row of a primary key column
INSERT INTO e VALUES ('b', NULL);
--! DataMismatchError: column 'n', row 0, table e: a non-nullable column contains a null
UPDATE e SET region = NULL;
--! DataMismatchError: column 'region', row 0, table e: a non-nullable column contains a null: expected a value in each row of a primary key column
INSERT INTO e (n) VALUES (1);
--! DataMismatchError: data, table e: columns 'region' are missing and cannot be null
COPY (SELECT NULL::VARCHAR AS region, 1 AS n) TO '{folder}/e.lance' (MODE 'append');
--! DataMismatchError: column 'region', row 0, table e: a non-nullable column contains a null: expected a value in each row of a primary key column
