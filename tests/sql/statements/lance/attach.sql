-- ATTACH and DETACH of folders of Lance tables, and names in them.
-- Table `t` has id 0 in `lance`, 1 and 2 in `one`, and 3 in `two` (4 was deleted in version 2). `two` has `u`.

CREATE TABLE lance.t AS SELECT 0::BIGINT AS id, 'home' AS s;
--> 1
ATTACH 'one' (TYPE lance);
ATTACH DATABASE 'two' AS two (TYPE 'LANCE');
CREATE TABLE one.t AS SELECT id, 'one' AS s FROM range(1, 3) r(id);
--> 2
CREATE TABLE two.t AS SELECT id, 'two' AS s FROM range(3, 5) r(id);
--> 2
DELETE FROM two.t WHERE id = 4;
--> 1
CREATE TABLE two.u AS SELECT 9::BIGINT AS x;
--> 1

--= tables of several folders have names

SELECT list(id) FROM t;
--> [0]
SELECT list(id) FROM lance.t;
--> [0]
SELECT list(id ORDER BY id) FROM one.t;
--> [1, 2]
SELECT list(id ORDER BY id) FROM ONE.main.T;
--> [1, 2]
SELECT list(id) FROM two.t;
--> [3]
FROM one.t JOIN two.t AS b ON one.t.id + 2 = b.id SELECT one.t.s, b.s;
--> one | two
SELECT count(*) FROM two.t;
--> 1

--= time travel is that of the named table

SELECT id FROM two.t AT (VERSION => 1) ORDER BY id;
--> 3
--> 4
SELECT id FROM lance_scan('two.t', version := 1) ORDER BY id;
--> 3
--> 4
USE two;
SELECT id FROM t AT (VERSION => 1) ORDER BY id;
--> 3
--> 4
SELECT id FROM main.t AT (VERSION => 1) ORDER BY id;
--> 3
--> 4

--= what is attached is listed and described by DuckDB

SHOW TABLES FROM two;
--> t
--> u
SELECT database_name FROM (SHOW DATABASES) WHERE database_name IN ('lance', 'one', 'two') ORDER BY 1;
--> lance
--> one
--> two
SELECT database, schema, name FROM (SHOW ALL TABLES) ORDER BY ALL;
--> lance | main | t
--> one | main | t
--> two | main | t
--> two | main | u
SELECT column_name, column_type FROM (DESCRIBE one.t);
--> id | BIGINT
--> s | VARCHAR
SELECT min, max FROM (SUMMARIZE one.t);
--> 1 | 2
--> one | one
SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'two' ORDER BY 2;
--> main | t
--> main | u

--= statements change the table of the database that they name

INSERT INTO one.t SELECT id + 7, s FROM two.t;
--> 1
UPDATE one.main.t SET s = upper(s) WHERE id = (SELECT min(id) FROM one.t) RETURNING *;
--> 1 | ONE
DELETE FROM one.t WHERE id IN (SELECT id - 1 FROM two.t);
--> 1
MERGE INTO one.t USING two.t AS q ON one.t.id = q.id WHEN NOT MATCHED THEN INSERT VALUES (q.id, q.s);
--> 1
ALTER TABLE one.t ADD COLUMN z INTEGER DEFAULT 5;
FROM one.t ORDER BY id;
--> 1 | ONE | 5
--> 3 | two | 5
--> 10 | two | 5
SELECT (SELECT list(id) FROM t), (SELECT list(id) FROM two.t);
--> [0] | [3]
TRUNCATE one.t;
--> 3
SELECT count(*) FROM one.t;
--> 0

--= tables are made and dropped in the folder of the database

CREATE TABLE one.fresh AS SELECT 1 AS a;
--> 1
CREATE TABLE two.main.fresh (b INTEGER);
FROM one.fresh;
--> 1
FROM two.fresh;
DROP TABLE one.fresh;
FROM 'one/fresh.lance';
--! NotFoundError
FROM 'two/fresh.lance';
CREATE TABLE one.other.fresh AS SELECT 1 AS a;
--! NotFoundError: … Schema with name other does not exist!
CREATE SCHEMA one.other;
CREATE TABLE one.other.fresh AS SELECT 1 AS a;
--> 1
FROM one.other.fresh;
--> 1
DROP SCHEMA one.main CASCADE;
--! UnsupportedError
DROP SCHEMA one.other CASCADE;
CREATE SCHEMA IF NOT EXISTS lance.x;

--= in a database that is used new tables are Lance tables
--each database: lance | one | lance.main

USE {database};
CREATE TABLE foo AS SELECT 1 AS a;
--> 1
CREATE TABLE main.bar (a INTEGER);
INSERT INTO bar FROM foo;
--> 1
FROM bar;
--> 1
FROM {database}.foo;
--> 1
FROM {database}.bar;
--> 1
CREATE TEMP TABLE own AS SELECT 2 AS b;
--> 1
USE memory;
CREATE TABLE own_too AS SELECT 3 AS c;
--> 1
SELECT table_name FROM duckdb_tables() ORDER BY 1;
--> own
--> own_too

--= a used database changes what names mean

USE two;
SELECT id FROM t;
--> 3
INSERT INTO t VALUES (5, 'new');
--> 1
UPDATE main.t SET id = id + 1 WHERE id IN (SELECT max(id) FROM t);
--> 1
SELECT list(id ORDER BY id) FROM t;
--> [3, 6]
SELECT list(id) FROM lance.t;
--> [0]
SELECT list(id ORDER BY id) FROM one.t;
--> [1, 2]
DETACH two;
--! BinderException: … default database
USE memory;
FROM t;
--! CatalogException: … Did you mean

--= a transaction changes tables of one database

BEGIN;
INSERT INTO one.t VALUES (7, 'x');
--> 1
SELECT (SELECT list(id ORDER BY id) FROM one.t), (SELECT list(id) FROM t), (SELECT list(id) FROM two.t);
--> [1, 2, 7] | [0] | [3]
UPDATE one.main.t SET id = 8 WHERE id = 7;
--> 1
INSERT INTO two.t VALUES (7, 'x');
--! UnsupportedError: … tables of one folder
ROLLBACK;
BEGIN; INSERT INTO two.t VALUES (7, 'x'); DELETE FROM two.t WHERE id = 3; COMMIT;
SELECT (SELECT list(id ORDER BY id) FROM one.t), (SELECT list(id) FROM two.t);
--> [1, 2] | [7]
SELECT version FROM lance_info('two.t');
--> 3

--= databases come and go outside of transactions
--each sql: ATTACH 'one' AS other (TYPE lance) | DETACH one

BEGIN; {sql};
--! UnsupportedError: … transaction

--= reading from a folder that does not exist says so
--each sql: FROM new.t | FROM new.main.t | DESCRIBE new.t | INSERT INTO new.t VALUES (1) | DELETE FROM new.t
--each sql: UPDATE new.t SET id = 1 | DROP TABLE new.t | ALTER TABLE new.t ADD COLUMN x INTEGER

ATTACH 'new/deep' AS new (TYPE lance);
{sql};
--! NotFoundError: … new/deep: no such folder
FROM unrelated;
--! CatalogException: … unrelated
FROM new.t;
--! NotFoundError: … new/deep: no such folder

--= the first table makes the folder

ATTACH 'new/deep' AS new (TYPE lance);
SELECT count(*) FROM duckdb_views() WHERE database_name = 'new';
--> 0
CREATE TABLE new.t AS SELECT 7 AS id;
--> 1
FROM new.t;
--> 7
FROM 'new/deep/t.lance';
--> 7
FROM new.u;
--! CatalogException

--= a change that fails makes no folder

ATTACH 'new' AS new (TYPE lance);
CREATE TABLE new.t AS SELECT error('no') AS id;
--! no
FROM new.t;
--! NotFoundError: … no such folder

--= detached databases leave nothing

DETACH DATABASE one;
SELECT count(*) FROM duckdb_views() WHERE database_name = 'one';
--> 0
FROM one.t;
--! Error
DETACH DATABASE IF EXISTS one;
DETACH one;
--! BinderException: … not found
ATTACH 'two' AS one (TYPE lance);
SELECT id FROM one.t AT (VERSION => 1) ORDER BY id;
--> 3
--> 4
DETACH lance;
--! UnsupportedError: … opened with

--= a name is attached again if the statement says so

ATTACH 'two' AS One (TYPE lance);
--! AlreadyExistsError: … database 'One'
ATTACH IF NOT EXISTS 'two' AS one (TYPE lance);
SELECT id FROM one.t ORDER BY id;
--> 1
--> 2
ATTACH OR REPLACE 'nope' AS one (TYPE lance);
--! NotFoundError
SELECT id FROM one.t ORDER BY id;
--> 1
--> 2
ATTACH OR REPLACE 'two' AS one (TYPE lance);
SELECT id FROM one.t;
--> 3
ATTACH ':memory:' AS own;
ATTACH OR REPLACE 'two' AS own (TYPE lance);
SELECT id FROM own.t;
--> 3

--= tables that are attached to be read are not changed
--each options: READ_ONLY | read_only true | VERSION 1 | TIMESTAMP '2100-01-01'

ATTACH 'two' AS q (TYPE lance, {options});
INSERT INTO q.t VALUES (1, 'x');
--! UnsupportedError: … database q is attached
UPDATE q.t SET id = 1;
--! UnsupportedError: … database q is attached
DELETE FROM q.t;
--! UnsupportedError: … database q is attached
TRUNCATE q.t;
--! UnsupportedError: … database q is attached
MERGE INTO q.t USING (SELECT 1 AS id) u USING (id) WHEN MATCHED THEN DELETE;
--! UnsupportedError: … database q is attached
ALTER TABLE q.t DROP COLUMN s;
--! UnsupportedError: … database q is attached
DROP TABLE q.t;
--! UnsupportedError: … database q is attached
CREATE TABLE q.v AS SELECT 1 AS a;
--! UnsupportedError: … database q is attached
CREATE OR REPLACE TABLE q.t AS SELECT 1 AS a;
--! UnsupportedError: … database q is attached
USE q; CREATE TABLE v (a INTEGER);
--! UnsupportedError: … database q is attached
CREATE INDEX i ON q.t (id);
--! UnsupportedError: … database q is attached
OPTIMIZE q.t;
--! UnsupportedError: … database q is attached
CALL lance_compact('q.t');
--! UnsupportedError: … database q is attached
CALL q.compact(t);
--! UnsupportedError: … database q is attached
COMMENT ON TABLE q.t IS 'x';
--! UnsupportedError: … database q is attached
COMMENT ON COLUMN q.main.t.id IS 'x';
--! UnsupportedError: … database q is attached
COPY q.t FROM 'rows.csv';
--! UnsupportedError: … database q is attached
SELECT version FROM lance_info('two.t');
--> 2
SELECT list(name ORDER BY name) FROM (SHOW TABLES FROM two);
--> ['t', 'u']
USE memory;
INSERT INTO two.t VALUES (1, 'x');
--> 1

--= databases that cannot be attached are refused

COPY (SELECT 'no folder') TO 'a.txt' (FORMAT csv);
--> 1
ATTACH 'nope' AS q (TYPE lance, READ_ONLY);
--! NotFoundError
ATTACH 'nope' AS q (TYPE lance, VERSION 1);
--! NotFoundError
ATTACH 'nope' AS q (TYPE lance, BRANCH 'b');
--! NotFoundError
ATTACH OR REPLACE 'nope' AS one (TYPE lance);
--! NotFoundError
ATTACH 'one/t.lance' AS q (TYPE lance);
--! InvalidInputError
ATTACH 'a.txt' AS q (TYPE lance);
--! NotFoundError
ATTACH '' AS q (TYPE lance);
--! InvalidInputError
ATTACH 'one' AS q (TYPE lance, ENDPOINT 'x');
--! InvalidInputError
ATTACH 'one' AS q (TYPE lance, READ_ONLY, READ_WRITE);
--! InvalidInputError
ATTACH 'one' AS q (TYPE lance, VERSION 1, TIMESTAMP '2020-01-01');
--! InvalidInputError
ATTACH 'one' AS q (TYPE lance, TYPE lance);
--! InvalidInputError
ATTACH 'one' AS q (TYPE lance, VERSION 1, READ_WRITE);
--! InvalidInputError
ATTACH 'one' AS main (TYPE lance);
--! BinderException
ATTACH 'one' AS temp (TYPE lance);
--! AlreadyExistsError
SELECT list(database_name ORDER BY database_name) FROM (SHOW DATABASES);
--> ['lance', 'memory', 'one', 'two']
SELECT 1;
--> 1

--= databases of DuckDB are attached as ever

ATTACH 'own.db' AS own;
CREATE SCHEMA own.s;
CREATE TABLE own.s.t AS FROM one.t;
--> 2
SELECT id FROM own.s.t ORDER BY id;
--> 1
--> 2
DROP SCHEMA own.s CASCADE;
DETACH own;

--= a path of a folder may be an expression

ATTACH ('tw' || 'o') AS r (TYPE lance);
SELECT id FROM r.t;
--> 3

--= an error is that of the database that is named

ATTACH 'one' AS old (TYPE lance, TIMESTAMP '2020-01-01');
ATTACH 'one' AS aside (TYPE lance, BRANCH 'nob');
SELECT 'ä' FROM aside.t;
--! NotFoundError: … no branch 'nob'
SELECT 'ä' FROM "aside" . main.t AS x;
--! NotFoundError: … no branch 'nob'
SELECT 'ä' FROM old.t;
--! NotFoundError: … 2020-01-01
USE aside;
FROM t;
--! NotFoundError: … no branch 'nob'
USE memory;
FROM t;
--! CatalogException: … Table with name t does not exist

--= functions take bare names of the database in use
--each sql: SELECT x FROM lance_scan('u') | SELECT max(version) + 8 FROM lance_versions('u')
--each sql: SELECT rows + 8 FROM lance_info('u') | SELECT max(x) FROM lance_scan('u', version := 1)

{sql};
--! u
USE two;
SELECT x FROM lance_scan('main.u');
--> 9
{sql};
--> 9
USE memory;
SELECT id FROM lance_scan('t');
--> 0

--= prepared functions take names of the database in use

PREPARE p AS SELECT id FROM lance_scan(?);
EXECUTE p('t');
--> 0
USE two;
EXECUTE p('t');
--> 3

--= a named database comes before the one in use
--each database: database := 'one' | database => 'one' | "Database" := 'one'

USE two;
SELECT rows FROM lance_info('t', {database});
--> 2
PREPARE p AS SELECT rows FROM lance_info(?, {database});
EXECUTE p('t');
--> 2

--= a view of a function keeps the table that a bare name meant

USE one; CREATE VIEW memory.v AS SELECT id FROM lance_scan('t'); USE two;
SELECT id FROM lance_scan('t');
--> 3
SELECT id FROM memory.v ORDER BY id;
--> 1
--> 2

--= odd names of databases and tables are names
--each name: "odd ""name""" | "a.b" | "Größe; DROP TABLE t" | "select" | "it's" | "lance.main"

ATTACH 'one' AS {name} (TYPE lance);
CREATE TABLE {name}.{name} AS FROM two.t;
--> 1
INSERT INTO {name}.main.{name} FROM {name}.t;
--> 2
SELECT id FROM {name}.{name} ORDER BY id;
--> 1
--> 2
--> 3
SELECT id FROM {name}.{name} AT (VERSION => 1);
--> 3
USE {name};
DELETE FROM {name} WHERE id = 3;
--> 1
SELECT id FROM {name} ORDER BY id;
--> 1
--> 2
SELECT id FROM one.{name} ORDER BY id;
--> 1
--> 2
DROP TABLE {name};
USE memory; DETACH {name};
SELECT id FROM one.t ORDER BY id;
--> 1
--> 2
