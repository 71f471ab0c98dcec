-- CREATE TABLE, DROP TABLE, ALTER TABLE, COMMENT and COPY … TO of Lance tables.

CREATE TABLE lance.trips AS SELECT i AS id, ['a', 'b', 'c', 'a', 'b'][i + 1] AS city FROM range(5) r(i);
--> 5
CREATE TABLE lance.dim AS FROM (VALUES ('a', 'Aa'), ('b', 'Bb'), ('c', 'Cc')) v(city, name);
--> 3

--= tables are made of columns

CREATE TABLE lance.fresh (id BIGINT PRIMARY KEY, "v v" FLOAT[3], s VARCHAR NOT NULL);
DESCRIBE fresh;
--> id | BIGINT | NO | PRI | NULL | NULL
--> v v | FLOAT[3] | YES | NULL | NULL | NULL
--> s | VARCHAR | NO | NULL | NULL | NULL
INSERT INTO fresh VALUES (1, [1, 2, 3], 'a');
--> 1
INSERT OR REPLACE INTO fresh VALUES (1, NULL, 'b');
--> 1
FROM fresh;
--> 1 | NULL | b
CREATE TABLE lance.other AS SELECT INTERVAL 1 DAY AS i;
--! UnsupportedError: … INTERVAL
FROM 'other.lance';
--! NotFoundError

--= what columns of Lance tables lack is refused
--each column: a INT CHECK (a > 1) | a INT DEFAULT 3 CHECK (a > 1) | a INT UNIQUE | a INT REFERENCES dim (city)

CREATE TABLE lance.other ({column});
--! UnsupportedError
FROM 'other.lance';
--! NotFoundError

--= names without a database are tables of the folder

CREATE TABLE own AS FROM trips;
--> 5
CREATE TABLE memory.native AS FROM trips;
--> 5
SELECT database_name FROM duckdb_tables() WHERE table_name IN ('own', 'native') ORDER BY ALL;
--> lance
--> memory
DROP TABLE own;
FROM 'own.lance';
--! NotFoundError
FROM 'native.lance';
--! NotFoundError

--= dropped tables are gone

DROP TABLE trips;
FROM 'trips.lance';
--! NotFoundError
DROP TABLE IF EXISTS trips;
DROP TABLE trips;
--! CatalogException
SHOW TABLES;
--> dim

--= copies write Lance tables

COPY (SELECT id FROM trips WHERE id < 2) TO 'copy.lance';
--> 2
COPY trips (id) TO 'copy.lance' (FORMAT lance, MODE 'append');
--> 5
SELECT count(*) FROM copy;
--> 7
COPY dim TO 'copy.lance' WITH (FORMAT 'lance', MODE overwrite);
--> 3
SELECT count(name) FROM copy;
--> 3
COPY dim TO 'copy.lance' (MODE 'create');
--! AlreadyExistsError
COPY dim TO 'copy.lance' (FORMAT csv);
--! InvalidInputError
COPY dim TO 'copy.lance' (FORMAT parquet, MODE 'append');
--! InvalidInputError
COPY dim TO 'copy.lance' (MODE 'other');
--! InvalidInputError
COPY dim TO 'copy.lance' (HEADER true);
--! Error
COPY dim TO 'dim.csv';
--> 3
SELECT content[:9] FROM read_text('dim.csv');
--> city,name
SELECT count(name) FROM copy;
--> 3

--= columns are altered
--each action: ADD COLUMN IF NOT EXISTS CITY INT | DROP COLUMN IF EXISTS nope

ALTER TABLE lance.trips {action};
SELECT column_name, column_type FROM (DESCRIBE trips);
--> id | BIGINT
--> city | VARCHAR
FROM trips ORDER BY 1 LIMIT 1;
--> 0 | a

--= a column is added, with a default, and is dropped

ALTER TABLE lance.trips ADD COLUMN x INTEGER;
FROM trips ORDER BY 1 LIMIT 1;
--> 0 | a | NULL
ALTER TABLE lance.trips ADD y DECIMAL(9, 2) DEFAULT 1 + 0.5;
SELECT column_name, column_type FROM (DESCRIBE trips);
--> id | BIGINT
--> city | VARCHAR
--> x | INTEGER
--> y | DECIMAL(9,2)
ALTER TABLE lance.trips DROP COLUMN city;
FROM trips ORDER BY 1 LIMIT 1;
--> 0 | NULL | 1.50
ALTER TABLE lance.trips RENAME x TO "the x";
ALTER TABLE lance.trips ALTER COLUMN id TYPE INTEGER;
ALTER TABLE lance.trips ALTER COLUMN id SET TYPE TINYINT;
ALTER TABLE lance.trips ALTER id SET DATA TYPE SMALLINT;
SELECT column_name, column_type FROM (DESCRIBE trips);
--> id | SMALLINT
--> the x | INTEGER
--> y | DECIMAL(9,2)
FROM trips ORDER BY 1 LIMIT 1;
--> 0 | NULL | 1.50

--= nulls are forbidden and allowed

ALTER TABLE trips ALTER city SET NOT NULL;
INSERT INTO trips VALUES (1, NULL);
--! DataMismatchError: column 'city'
ALTER TABLE trips ALTER city DROP NOT NULL;
INSERT INTO trips VALUES (1, NULL);
--> 1

--= other alterations are refused

ALTER TABLE trips RENAME TO dim;
--! Error
ALTER TABLE trips RENAME TO 'other.lance';
--! Error
ALTER TABLE trips RENAME TO "other/one";
--! Error
ALTER TABLE trips ADD COLUMN x INT NOT NULL;
--! Error
ALTER TABLE trips ADD COLUMN x INT CHECK (x > 1);
--! Error
ALTER TABLE trips ALTER id TYPE VARCHAR COLLATE nocase;
--! Error
ALTER TABLE trips ALTER city SET DEFAULT (SELECT 'x');
--! Error
ALTER TABLE trips DROP nope;
--! Error
ALTER TABLE trips RENAME nope TO x;
--! Error
ALTER TABLE trips ADD COLUMN;
--! Error
ALTER TABLE trips ALTER id TYPE nope;
--! Error
SELECT version FROM lance_info('trips');
--> 1

--= tables are not copied to paths in a transaction

EXPLAIN COPY dim TO 'q.lance';
--~ lance_change
BEGIN; COPY dim TO 'q.lance';
--! UnsupportedError: … transaction

--= tables are neither made nor dropped by a transaction that is rolled back, or on a connection for reading
--each sql: CREATE TABLE lance.q AS SELECT 1 AS a | DROP TABLE trips

EXPLAIN {sql};
--~ lance_change
BEGIN; {sql}; ROLLBACK;
SHOW TABLES;
--> dim
--> trips
--on reader
{sql};
--! UnsupportedError: … read-only
SHOW TABLES;
--> dim
--> trips

--= comments that make no sense are refused

COMMENT ON COLUMN trips.nope IS 'x';
--! UnknownColumnError: … 'nope'
COMMENT ON TABLE trips IS 'x' || 'y';
--! InvalidInputError
--on reader
COMMENT ON TABLE trips IS 'x';
--! UnsupportedError: … read-only
SELECT version FROM lance_info('trips');
--> 1

--= columns of new tables are those of others

CREATE TEMP TABLE own (a INTEGER PRIMARY KEY, b VARCHAR NOT NULL, c DATE);
CREATE TABLE lance.first LIKE own;
CREATE TABLE lance.second (LIKE lance.first);
DESCRIBE first;
--> a | INTEGER | NO | PRI | NULL | NULL
--> b | VARCHAR | NO | NULL | NULL | NULL
--> c | DATE | YES | NULL | NULL | NULL
DESCRIBE second;
--> a | INTEGER | NO | PRI | NULL | NULL
--> b | VARCHAR | NO | NULL | NULL | NULL
--> c | DATE | YES | NULL | NULL | NULL
INSERT INTO first VALUES (1, 'x', NULL);
--> 1
INSERT OR REPLACE INTO first VALUES (1, 'y', NULL);
--> 1
FROM first;
--> 1 | y | NULL
INSERT INTO second VALUES (1, 'x', NULL);
--> 1
INSERT OR REPLACE INTO second VALUES (1, 'y', NULL);
--> 1
FROM second;
--> 1 | y | NULL

--= options of new tables are those of write_dataset

CREATE TABLE lance.a WITH (data_storage_version = '2.1', max_rows_per_file = 3) AS FROM trips;
--> 5
SELECT storage_version, fragments FROM lance_info('a');
--> 2.1 | 2
CREATE TABLE lance.b (x INTEGER) WITH (enable_stable_row_ids = true);
SELECT stable_row_ids FROM lance_info('b');
--> true
CREATE TABLE lance.c (x INTEGER) WITH (max_row_per_file = 3);
--! WrongTypeError: … unknown option 'max_row_per_file'
FROM 'c.lance';
--! NotFoundError

--= a table that exists is left alone if the statement says so

CREATE TABLE lance.empty (a INTEGER);
CREATE TABLE IF NOT EXISTS lance.empty (b INTEGER);
SELECT column_name FROM (DESCRIBE empty);
--> a

--= several tables are dropped or none

CREATE TEMP TABLE own (a INTEGER);
DROP TABLE trips, nope;
--! NotFoundError: … nope
DROP TABLE IF EXISTS dim, own;
--! UnsupportedError: … native tables together
SHOW TABLES;
--> dim
--> own
--> trips
DROP TABLE IF EXISTS trips, nope, lance.dim, 'nope.lance' CASCADE;
SHOW TABLES;
--> own

--= a path without a table is dropped if it may be missing

DROP TABLE IF EXISTS 'nope.lance';
DROP TABLE 'nope.lance';
--! NotFoundError: … no such table

--= tables of DuckDB have comments, indexes and statistics

CREATE TEMP TABLE own (comment INTEGER);
COMMENT ON TABLE own IS 'mine';
CREATE INDEX by_comment ON own (comment);
VACUUM ANALYZE own;
SELECT comment FROM duckdb_tables() WHERE table_name = 'own';
--> mine

--= a name in another case is the same table

CREATE TABLE lance.TRIPS AS SELECT 1 AS a;
--! AlreadyExistsError
CREATE OR REPLACE TABLE lance.TRIPS AS SELECT 1 AS a;
--> 1
FROM trips;
--> 1

--= copies to odd names and dropped views are refused
--each sql: CREATE OR REPLACE VIEW lance.trips AS SELECT 1 AS id
--each sql: CREATE TABLE lance.generated (a INTEGER, b AS (a + 1)) | COPY trips TO 'x.lance' CSV HEADER
--each sql: COPY trips TO 'x.lance' (FORMAT lance) more | DROP VIEW trips

{sql};
--! Error
FROM 'x.lance';
--! NotFoundError
SELECT count(*) FROM trips;
--> 5

--= a table that another connection made again is the new one

FROM dim;
--> a | Aa
--> b | Bb
--> c | Cc
--on other
DROP TABLE dim;
--on other
CREATE TABLE lance.dim AS SELECT 'q' AS city, 'new' AS name;
--> 1
FROM dim;
--> q | new
INSERT INTO dim VALUES ('r', 'more');
--> 1
--on other
FROM dim;
--> q | new
--> r | more

--= a table is dropped whatever depends on it

DROP TABLE dim CASCADE;
FROM 'dim.lance';
--! NotFoundError
CREATE VIEW later AS SELECT 2 AS id;
FROM later;
--> 2

--= the database of a new name counts after USE

CREATE TABLE lance.t AS SELECT 1 AS id;
--> 1
ATTACH 'own.db' AS own;
USE lance;
CREATE OR REPLACE TABLE own.t AS SELECT 'text' AS z;
--> 1
CREATE TABLE memory.m AS SELECT 2 AS id;
--> 1
CREATE TABLE main.n AS SELECT 3 AS id;
--> 1
CREATE TABLE nosuch.x AS SELECT 1 AS id;
--! CatalogException: … nosuch
FROM lance.t;
--> 1
FROM own.t;
--> text
SHOW TABLES;
--> dim
--> n
--> t
--> trips

--= columns of types that Lance lacks are refused
--each type: BIT | TIMETZ | INTERVAL | UNION(a INT, b VARCHAR) | STRUCT(t TIMETZ)

CREATE TABLE lance.t (c {type});
--! UnsupportedError: … column 'c'
FROM 't.lance';
--! NotFoundError

--= a script that sets the schema makes its tables there
--each before: SET schema = 'lance.main' | /* all */ set search_path = 'lance.main'
--each before: PRAGMA search_path = 'lance.main' | SET threads = 2; SET schema = 'lance.main'

SELECT count(*) FROM trips;
--> 5
{before}; CREATE TABLE made AS SELECT 1 AS a;
--> 1
FROM 'made.lance';
--> 1
--on reader
{before}; CREATE TABLE more AS SELECT 1 AS a;
--! UnsupportedError: … read-only
FROM 'more.lance';
--! NotFoundError

--= a script that resets the schema makes its tables in DuckDB

SET schema = 'lance.main';
RESET schema; CREATE TABLE memory.main.made AS SELECT 1 AS a; INSERT INTO memory.main.made VALUES (2);
--> 1
FROM memory.main.made;
--> 1
--> 2
FROM 'made.lance';
--! NotFoundError

--= views of DuckDB are changed as ever

CREATE VIEW seen AS SELECT 1 AS a;
COMMENT ON VIEW seen IS 'mine'; ALTER VIEW seen RENAME TO looked;
SELECT comment FROM duckdb_views() WHERE view_name = 'looked';
--> mine
CREATE OR REPLACE TEMP VIEW trips AS SELECT 2 AS own;
FROM trips;
--> 2
ATTACH ':memory:' AS side; ALTER DATABASE side SET ALIAS TO other; CREATE TABLE other.t AS SELECT 3 AS a;
--> 1
FROM other.t;
--> 3
CREATE OR REPLACE TEMP VIEW dim AS SELECT 4 AS own;
FROM temp.dim;
--> 4
SELECT count(*) FROM lance.trips;
--> 5

--= the views that stand for tables are not changed

USE lance;
ALTER VIEW lance.trips RENAME TO q;
--! table trips: ALTER VIEW … ALTER TABLE
ALTER VIEW IF EXISTS trips RENAME TO q;
--! table trips: ALTER VIEW
COMMENT ON VIEW trips IS 'x';
--! table trips: COMMENT ON VIEW … COMMENT ON TABLE
ALTER DATABASE lance SET ALIAS TO foo;
--! database lance: ALTER DATABASE … ATTACH
ALTER DATABASE IF EXISTS LANCE SET ALIAS TO foo;
--! database LANCE: ALTER DATABASE
CREATE OR REPLACE VIEW trips AS SELECT 1 AS id;
--! AlreadyExistsError: view trips: … DROP TABLE
CREATE OR REPLACE VIEW main.trips AS SELECT 1 AS id;
--! AlreadyExistsError: view trips: … DROP TABLE
SELECT count(*) FROM lance.trips;
--> 5
SELECT comment FROM duckdb_tables() WHERE table_name = 'trips';
--> NULL

--= a script that changes the view of a table is refused, and a connection for reading refuses all
--each sql: ALTER VIEW lance.trips RENAME TO q | ALTER VIEW IF EXISTS trips RENAME TO q | COMMENT ON VIEW trips IS 'x'
--each sql: ALTER DATABASE lance SET ALIAS TO foo | ALTER DATABASE IF EXISTS LANCE SET ALIAS TO foo
--each sql: CREATE OR REPLACE VIEW trips AS SELECT 1 AS id | CREATE OR REPLACE VIEW main.trips AS SELECT 1 AS id

USE lance;
SELECT 1; {sql};
--! Error
--on reader
USE lance;
--on reader
{sql};
--! UnsupportedError: … read-only
--on reader
SELECT 1; {sql};
--! UnsupportedError: … read-only
--on reader
SELECT count(*) FROM lance.trips;
--> 5
