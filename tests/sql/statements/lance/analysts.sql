-- What a user of DuckDB tries on Lance tables works as there, or is refused in words of SQL.

CREATE TABLE lance.trips AS SELECT i AS id, ['a', 'b', 'c', 'a', 'b'][i + 1] AS city FROM range(5) r(i);
--> 5
CREATE TABLE lance.dim AS FROM (VALUES ('a', 'Aa'), ('b', 'Bb'), ('c', 'Cc')) v(city, name);
--> 3

--= only Lance tables have upkeep and indexes
--each sql: OPTIMIZE own | REINDEX own | SHOW INDEXES ON own

CREATE TEMP TABLE own (a INTEGER);
{sql};
--! UnsupportedError: … own: not a Lance table

--= a folder of the process may have a plain name

CREATE TABLE 'plain.lance' AS SELECT 1 AS a;
--> 1
FROM lance_scan('plain');
--> 1
FROM lance_scan('plain', version := 9);
--! NotFoundError: … no version 9

--= DESCRIBE of a query is that of DuckDB

DESCRIBE SELECT id FROM trips;
--> id | BIGINT | YES | NULL | NULL | NULL
SHOW TABLES;
--> dim
--> trips

--= a table is described and commented as it is now

CREATE TABLE lance.grown (a INTEGER); COMMENT ON TABLE grown IS 'first';
ALTER TABLE grown ADD COLUMN b VARCHAR;
SELECT column_name FROM duckdb_columns() WHERE table_name = 'grown';
--> a
--> b
COMMENT ON COLUMN grown.b IS 'new'; COMMENT ON TABLE grown IS NULL;
SELECT comment FROM duckdb_columns() WHERE column_name = 'b';
--> new
SELECT comment FROM duckdb_tables() WHERE table_name = 'grown';
--> NULL

--= ANALYZE does nothing
--each sql: ANALYZE trips | VACUUM ANALYZE trips | VACUUM ANALYZE lance.trips

{sql};
SELECT version FROM lance_info('trips');
--> 1
SELECT count(*) FROM glob('trips.lance/**') WHERE file LIKE '%.manifest';
--> 1

--= a view may be kept where DuckDB keeps it

USE lance; CREATE VIEW memory.main.seen AS FROM lance.dim; CREATE TEMP VIEW short AS FROM dim;
SELECT count(*) FROM memory.main.seen;
--> 3
SELECT count(*) FROM short;
--> 3
CREATE VIEW seen AS FROM dim;
SELECT count(*) FROM lance.seen;
--> 3
USE memory; CREATE VIEW other AS SELECT 1;
FROM lance.other;
--! CatalogException
