-- INSERT, UPDATE, DELETE and TRUNCATE of Lance tables: names, versions, refusals.

CREATE TABLE lance.trips AS SELECT i AS id, ['a', 'b', 'c', 'a', 'b'][i + 1] AS city FROM range(5) r(i);
--> 5
INSERT INTO trips VALUES (5, 'x'), (6, 'y'), (7, 'z');
--> 3
DELETE FROM trips WHERE id = 6;
--> 1
CREATE TABLE lance.dim AS FROM (VALUES ('a', 'Aa'), ('b', 'Bb'), ('c', 'Cc')) v(city, name);
--> 3

--= a table is changed by every name that it has
--each name: trips | TRIPS | "trips" | lance.trips | lance.main.trips | main.trips

DELETE FROM {name} WHERE id > 0;
--> 6
UPDATE {name} SET city = (SELECT count(*) FROM {name});
--> 1
INSERT INTO {name} SELECT id + 1, city FROM {name};
--> 1
FROM trips ORDER BY ALL;
--> 0 | 1
--> 1 | 1

--= a table is changed by its path

COPY (SELECT * FROM (VALUES (1), (2)) v(id)) TO 'it''s.lance';
--> 2
INSERT INTO 'it''s.lance' SELECT id + 10 FROM 'it''s.lance';
--> 2
DELETE FROM 'it''s.lance' WHERE "it's".id = 1;
--> 1
UPDATE 'it''s.lance' x SET id = -x.id WHERE id IN (SELECT max(id) FROM 'it''s.lance');
--> 1
FROM 'it''s.lance' ORDER BY ALL;
--> -12
--> 2
--> 11
DELETE FROM 'missing.lance';
--! NotFoundError

--= a change that finds no row makes no version

DELETE FROM trips WHERE false;
--> 0
UPDATE trips SET id = 1 WHERE false;
--> 0
INSERT INTO trips SELECT * FROM trips WHERE false;
--> 0
SELECT version FROM lance_info('trips');
--> 3

--= EXPLAIN says what would be read and writes nothing
--each explain: EXPLAIN | EXPLAIN ANALYZE
--each sql: DELETE FROM trips WHERE id = 1 | UPDATE trips SET id = 1 | INSERT INTO trips SELECT * FROM trips
--each sql: INSERT INTO trips VALUES (1, 'a') | REPLACE trips WHERE id = 1 AS VALUES (1, 'a')

{explain} {sql};
--~ This is the plan that finds the rows to change. Nothing was written.
{explain} {sql};
--~ lance_change
SELECT version FROM lance_info('trips');
--> 3

--= connections for reading refuse changes before they run
--each sql: INSERT INTO trips SELECT error('evaluated'), 'a' | DELETE FROM lance.trips | UPDATE trips SET id = 1
--each sql: TRUNCATE trips | DELETE FROM 'trips.lance' | WITH q AS (SELECT 1) DELETE FROM trips
--each sql: SELECT 1; DELETE FROM trips

--on reader
{sql};
--! UnsupportedError: … read-only
SELECT list(id ORDER BY id) FROM trips;
--> [0, 1, 2, 3, 4, 5, 7]
--on reader
CREATE TEMP TABLE own AS SELECT 1 AS a; INSERT INTO own VALUES (2);
--> 1

--= a table of DuckDB hides a Lance table that a qualified name still means

CREATE TEMP TABLE trips AS SELECT 99 AS id, 'mine' AS city;
--> 1
INSERT INTO lance.trips SELECT * FROM trips;
--> 1
DELETE FROM trips;
--> 1
SELECT count(*) FROM trips;
--> 0
SELECT * FROM lance.trips ORDER BY id DESC LIMIT 1;
--> 99 | mine
UPDATE lance.trips SET id = 100 WHERE lance.trips.id = (SELECT max(lance.trips.id) FROM lance.trips);
--> 1
SELECT * FROM lance.trips ORDER BY id DESC LIMIT 1;
--> 100 | mine
SHOW TABLES;
--> dim
--> trips
--> trips

--= several statements run one after the other

DELETE FROM trips WHERE id = 1; -- one; two
INSERT INTO trips VALUES (8, ';'); SELECT max(id), 5 FROM trips;
--> 8 | 5
SELECT version FROM lance_info('trips');
--> 5

--= a source with effects is read once

CREATE TEMP SEQUENCE ids START 100;
INSERT INTO trips SELECT nextval('ids'), 'n' FROM range(2);
--> 2
SELECT id FROM trips WHERE city = 'n' ORDER BY id;
--> 100
--> 101

--= DISTINCT FROM begins no clause

UPDATE trips SET city = 'd' WHERE id IS DISTINCT FROM 3 AND id IS NOT DISTINCT FROM 4;
--> 1
UPDATE trips SET city = (id IS DISTINCT FROM 3)::VARCHAR WHERE id = 3;
--> 1
SELECT city FROM trips WHERE id IN (3, 4) ORDER BY id;
--> false
--> d

--= errors are about the statement as it was written

DELETE FROM trips WHERE;
--! syntax error
UPDATE trips SET id = 1 LIMIT 3;
--! at or near "LIMIT"
DELETE FROM trips WHERE id = 1 ORDER BY id LIMIT 1;
--! at or near "ORDER"
UPDATE trips SET nope = 1;
--! no column 'nope'
UPDATE trips SET id = nope;
--! nope
INSERT INTO trips (id, id) VALUES (1, 2);
--! named twice
INSERT INTO trips VALUES (1);
--! expected 2 values, found 1
INSERT INTO trips SELECT 1;
--! expected 2 values, found 1
INSERT INTO trips BY NAME SELECT 1 AS nope;
--! no column 'nope'
INSERT INTO trips (id) BY NAME SELECT 1 AS id;
--! BY NAME
INSERT INTO trips (id) VALUES ('x');
--! Could not convert string 'x'
DELETE FROM trips RETURNING sum(id);
--! ggregate
UPDATE trips SET id = 1, id = 2;
--! named twice
DELETE FROM nowhere;
--! nowhere
SELECT version FROM lance_info('trips');
--> 3
SELECT list(id ORDER BY id), list(city ORDER BY id) FROM trips;
--> [0, 1, 2, 3, 4, 5, 7] | ['a', 'b', 'c', 'a', 'b', 'x', 'z']

--= names of tables and columns are quoted
--each name: "odd name" | "quo""te" | "semi;colon" | "-- comment" | "*;-- " | "$1" | "?" | "select" | "ünï" | "CASE"
--each name: "it's"

CREATE TABLE lance.{name} AS FROM (VALUES (1, 4), (2, 5), (3, 6)) v({name}, b);
--> 3
INSERT INTO {name} ({name}) VALUES (9), (10);
--> 2
UPDATE {name} SET {name} = {name}.{name} + (SELECT max(b) FROM {name}) WHERE b = 4;
--> 1
DELETE FROM {name} WHERE b = 5 RETURNING {name};
--> 2
FROM {name} ORDER BY ALL;
--> 3 | 6
--> 7 | 4
--> 9 | NULL
--> 10 | NULL

--= stable row ids and indexes stay true

CREATE TABLE lance.t WITH (enable_stable_row_ids = true) AS SELECT i AS id, 'a' AS s FROM range(100) r(i);
--> 100
CREATE INDEX i ON t (id);
UPDATE t SET s = 'u' WHERE id IN (7, 8);
--> 2
DELETE FROM t WHERE id BETWEEN 10 AND 20;
--> 11
INSERT INTO t VALUES (7, 'again');
--> 1
SELECT _rowid, s FROM t WHERE id IN (7, 8) AND s = 'u' ORDER BY id;
--> 7 | u
--> 8 | u
SELECT s FROM t WHERE id = 7 ORDER BY s;
--> again
--> u
SELECT count(*) FROM t WHERE id BETWEEN 5 AND 25;
--> 11

--= a transaction changes tables of one folder

CREATE TABLE memory.own (a INT);
BEGIN; DELETE FROM trips WHERE id = 1;
--> 1
DELETE FROM dim;
--> 3
ROLLBACK;
BEGIN; DELETE FROM trips WHERE id = 1;
--> 1
INSERT INTO own VALUES (1);
--! TransactionException: … single
ROLLBACK; BEGIN; INSERT INTO own VALUES (1);
--> 1
DELETE FROM trips WHERE id = 1;
--! TransactionException: … single
ROLLBACK;
SELECT list(id ORDER BY id) FROM trips;
--> [0, 1, 2, 3, 4, 5, 7]
BEGIN; CREATE TEMP TABLE staged AS SELECT id + 60 AS id FROM trips LIMIT 1;
--> 1
INSERT INTO trips (id) FROM staged; COMMIT;
SELECT max(id) FROM trips;
--> 60

--= an error of a Lance table takes the transaction along

BEGIN; DELETE FROM trips WHERE id = 1;
--> 1
UPDATE trips SET nope = 1;
--! UnknownColumnError: … no column
FROM trips;
--! aborted
ROLLBACK;
SELECT list(id ORDER BY id) FROM trips;
--> [0, 1, 2, 3, 4, 5, 7]

--= a refused statement leaves the transaction open

BEGIN; DELETE FROM trips WHERE id = 1;
--> 1
COPY trips TO 'copy.lance';
--! UnsupportedError
CREATE INDEX i ON trips (id);
--! UnsupportedError
DROP INDEX i ON trips;
--! UnsupportedError
OPTIMIZE trips;
--! UnsupportedError
VACUUM trips;
--! UnsupportedError
REINDEX trips;
--! UnsupportedError
CALL lance_compact('trips');
--! UnsupportedError
ALTER VIEW trips RENAME TO x;
--! UnsupportedError
ATTACH 'other' (TYPE lance);
--! UnsupportedError
INSERT INTO trips (id) VALUES (80);
--> 1
COMMIT;
SELECT list(id ORDER BY id) FROM trips;
--> [0, 2, 3, 4, 5, 7, 80]

--= after a failed statement, COMMIT ends the transaction without its changes
--each sql: SELECT error('x') | INSERT INTO trips VALUES ('x', 'y') | DELETE FROM trips WHERE error('x') | FROM 'no.parquet'

BEGIN; DELETE FROM trips WHERE id = 1;
--> 1
{sql};
--! …
COMMIT;
--! InvalidInputError: nothing was committed, … the transaction has ended
ROLLBACK;
--! TransactionException: … no transaction is active
SELECT count(*) FROM trips;
--> 7

--= syntax errors abort a transaction in DuckDB 2 only
--each sql: INSERT INTO trips (SELEC 1) | UPDATE trips SET | DELETE trips | MERGE INTO trips USING | ALTER TABLE trips ADD

BEGIN; DELETE FROM trips WHERE id = 1;
--> 1
{sql};
--! ParserException
--only duckdb 1
FROM range(1);
--> 0
--only duckdb 2
FROM range(1);
--! TransactionException
ROLLBACK;

--= a statement that fails in a transaction ends it until ROLLBACK

BEGIN;
UPDATE trips SET city = 'q';
--> 7
INSERT INTO trips SELECT 'abc', 'd';
--! ConversionException
SELECT 1;
--! TransactionException
ROLLBACK;
SELECT count(*), count(*) FILTER (city = 'q') FROM trips;
--> 7 | 0

--= a version that is not there is refused in a transaction

BEGIN;
INSERT INTO trips VALUES (100, 'n');
--> 1
FROM lance_table_changes('trips', 1, 16406968644986704198);
--! no version 16406968644986704198
ROLLBACK;

--= an older version in a transaction is that version
--each name: trips | lance.trips | lance.main.trips | 'trips.lance'

CALL lance_create_tag('trips', 'second', 2);
BEGIN; TRUNCATE trips;
--> 7
SELECT count(*) FROM {name} AT (VERSION => 1);
--> 5
SELECT count(*) FROM {name} AS x AT (VERSION => 'second');
--> 8
SELECT count(*) FROM {name};
--> 0
SELECT count(*) FROM lance_scan('trips', version := 2);
--> 8
ROLLBACK;

--= ONLY means nothing in DuckDB 1, and DuckDB 2 has no such word

--only duckdb 2
DELETE FROM ONLY (trips);
--! ParserException
--only duckdb 2
UPDATE trips * SET id = 1;
--! ParserException
--only duckdb 1
DELETE FROM ONLY (trips);
--! UnsupportedError: table trips: this form of the statement is not supported on Lance tables: found DELETE FROM ONLY (trips)
--only duckdb 1
UPDATE trips * SET id = 1;
--! UnsupportedError: table trips: this form of the statement is not supported on Lance tables: found UPDATE trips * SET id = 1
--only duckdb 1
UPDATE ONLY trips SET city = 'o' WHERE id = 1;
--> 1
--only duckdb 1
DELETE FROM ONLY trips WHERE id = 1;
--> 1
--only duckdb 1
TRUNCATE TABLE ONLY trips;
--> 6
--only duckdb 1
SELECT count(*) FROM trips;
--> 0

--= REPLACE deletes and adds rows in one version

REPLACE trips WHERE city = 'b' AS SELECT 100 + id, city FROM trips WHERE city = 'b' UNION ALL SELECT 200, 'b';
--> 2 | 3
SELECT id, city FROM trips WHERE city = 'b' ORDER BY id;
--> 101 | b
--> 104 | b
--> 200 | b
SELECT version FROM lance_info('trips');
--> 4
REPLACE trips AS t WHERE CASE WHEN t.city = 'c' THEN true END AS WITH s AS (VALUES (9, 'c')) FROM s;
--> 1 | 1
REPLACE trips WHERE city = 'nowhere' AS FROM trips WHERE false;
--> 0 | 0
REPLACE trips WHERE city IN ('a', 'b', 'c') AS FROM trips WHERE false;
--> 6 | 0
SELECT id FROM trips;
--> 5
--> 7
SELECT version FROM lance_info('trips');
--> 6

--= REPLACE refuses new rows outside of its condition, and changes nothing
--each rows: (1, 'b'), (2, 'c') | (1, 'b'), (2, NULL)

REPLACE trips WHERE city = 'b' AS VALUES {rows};
--! table trips: row 1 of the new rows does not satisfy the condition: expected city = 'b', found city = …
SELECT version FROM lance_info('trips');
--> 3

--= REPLACE is refused if new rows cannot be checked, or the statement is incomplete

REPLACE trips WHERE id IN (SELECT max(id) FROM trips) AS VALUES (1, 'b');
--! a condition with a subquery
REPLACE trips WHERE rowid = 1 AS VALUES (1, 'b');
--! rowid, _rowid and _rowaddr are not available
REPLACE trips WHERE id = 1 AS VALUES (1, 'b') RETURNING id;
--! REPLACE does not have RETURNING
REPLACE trips WHERE random() < 0.5 AS VALUES (1, 'b');
--! the condition of REPLACE must return the same result for the same row
REPLACE trips WHERE id = 1;
--! REPLACE needs WHERE and AS
REPLACE trips AS VALUES (1, 'b');
--! REPLACE needs WHERE and AS
REPLACE trips WHERE id = 1 AS 7;
--! REPLACE needs a query after AS
REPLACE trips WHERE id = 1 AS SELECT 1;
--! expected 2 values, found 1
REPLACE trips WHERE nope = 1 AS SELECT 1, 'b';
--! nope
REPLACE nothing WHERE id = 1 AS SELECT 1, 'b';
--! NotFoundError
--on reader
REPLACE trips WHERE id = 1 AS SELECT 1, 'b';
--! read-only
SELECT count(*) FROM trips;
--> 7

--= REPLACE in a transaction is a part of its version

BEGIN;
REPLACE trips WHERE city = 'a' AS VALUES (10, 'a');
--> 2 | 1
INSERT INTO trips VALUES (11, 'a');
--> 1
REPLACE trips WHERE city = 'a' AS SELECT id + 1, city FROM trips WHERE city = 'a';
--> 2 | 2
COMMIT;
SELECT id FROM trips WHERE city = 'a' ORDER BY id;
--> 11
--> 12
SELECT version FROM lance_info('trips');
--> 4
BEGIN;
REPLACE trips WHERE true AS VALUES (0, 'z');
--> 7 | 1
ROLLBACK;
SELECT count(*) FROM trips;
--> 7

--= REPLACE checks the primary key against the rows that stay

CREATE TABLE keyed (id INTEGER PRIMARY KEY, city VARCHAR);
INSERT INTO keyed VALUES (1, 'a'), (2, 'b'), (3, 'b');
--> 3
REPLACE keyed WHERE city = 'b' AS VALUES (2, 'b'), (1, 'b');
--! DuplicateKeyError
REPLACE keyed WHERE city = 'b' AS VALUES (2, 'b'), (4, 'b');
--> 2 | 2
