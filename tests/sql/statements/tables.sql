-- CREATE TABLE and DROP TABLE.

CREATE TABLE lance.t (id INTEGER NOT NULL, name VARCHAR, tags VARCHAR[], s STRUCT(x INTEGER));

INSERT INTO t VALUES (1, 'a', ['r', 'g'], {'x': 7});
--> 1

SELECT id, tags, s.x FROM t;
--> 1 | ['r', 'g'] | 7

SELECT column_name, column_type FROM (DESCRIBE t) ORDER BY column_name;
--> id | INTEGER
--> name | VARCHAR
--> s | STRUCT(x INTEGER)
--> tags | VARCHAR[]

CREATE TABLE lance.t (id INTEGER);
--! t

CREATE TABLE IF NOT EXISTS lance.t (other INTEGER);

SELECT count(*), max(id) FROM t;
--> 1 | 1

CREATE OR REPLACE TABLE lance.t AS SELECT range AS n FROM range(3);
--> 3

SELECT sum(n) FROM t;
--> 3

CREATE TABLE lance.u AS SELECT 1 AS a, 'x' AS b;
--> 1

SELECT a, b FROM u;
--> 1 | x

DROP TABLE lance.u;

FROM u;
--! u does not exist

DROP TABLE lance.u;
--! u

DROP TABLE IF EXISTS lance.u;

-- What a Lance table cannot keep is refused.
--only lance
CREATE TABLE lance.v (id INTEGER CHECK (id > 0));
--! CHECK

--only lance
CREATE TABLE '{folder}/by path.lance' AS SELECT 1 AS id;
--> 1

--only lance
SELECT id FROM '{folder}/by path.lance';
--> 1

--only lance
DROP TABLE '{folder}/by path.lance';
