-- DEFAULT: the values of columns that a statement leaves out.

CREATE TABLE lance.t (id INTEGER, v INTEGER DEFAULT 7, w VARCHAR DEFAULT upper('w'), x INTEGER);
INSERT INTO lance.t VALUES (1, 10, 'a', 100), (2, 20, 'b', 200);
--> 2

--= INSERT sets columns that it does not name

INSERT INTO t (id) VALUES (3), (4);
--> 2
INSERT INTO t (x, id) VALUES (NULL, 1 + 4);
--> 1
INSERT INTO t (id, x) SELECT range + 6, range FROM range(2);
--> 2
INSERT INTO t BY NAME SELECT 1 AS x, 8 AS id;
--> 1
INSERT INTO t DEFAULT VALUES;
--> 1
FROM t WHERE id > 2 OR id IS NULL ORDER BY id;
--> 3 | 7 | W | NULL
--> 4 | 7 | W | NULL
--> 5 | 7 | W | NULL
--> 6 | 7 | W | 0
--> 7 | 7 | W | 1
--> 8 | 7 | W | 1
--> NULL | 7 | W | NULL

--= an explicit NULL stays NULL

INSERT INTO t (id, v, w) VALUES (3, NULL, NULL);
--> 1
INSERT INTO t SELECT 4, NULL, NULL, NULL;
--> 1
FROM t WHERE id > 2 ORDER BY id;
--> 3 | NULL | NULL | NULL
--> 4 | NULL | NULL | NULL

--= DEFAULT is a value in VALUES

INSERT INTO t VALUES (3, DEFAULT, DEFAULT, DEFAULT), (4, 1 + 1, 'x', (DEFAULT)), (DEFAULT, ((DEFAULT)), NULL, 5);
--> 3
INSERT INTO t (w, v) VALUES (DEFAULT, DEFAULT) RETURNING *;
--> NULL | 7 | W | NULL
FROM t WHERE id > 2 OR id IS NULL ORDER BY id, x;
--> 3 | 7 | W | NULL
--> 4 | 2 | x | NULL
--> NULL | 7 | NULL | 5
--> NULL | 7 | W | NULL

--= DEFAULT inside an expression or a query is an error

INSERT INTO t (id, v) VALUES (5, DEFAULT + 1);
--! DEFAULT is not allowed here
INSERT INTO t (id, v) SELECT 5, DEFAULT;
--! DEFAULT
INSERT INTO t VALUES (5, 6), (DEFAULT, DEFAULT);
--! Error
SELECT count(*) FROM t;
--> 2

--= UPDATE sets DEFAULT

UPDATE t SET v = DEFAULT, x = DEFAULT WHERE id = 1 RETURNING id, v, x;
--> 1 | 7 | NULL
UPDATE t SET (v, w) = (DEFAULT, 'q') WHERE id = 2;
--> 1
UPDATE t SET w = (DEFAULT), v = v + 1 FROM range(2) AS r (n) WHERE t.id = r.n RETURNING t.*;
--> 1 | 8 | W | NULL
UPDATE t SET (v, w) = DEFAULT WHERE id = 2;
--> 1
UPDATE t SET v = DEFAULT WHERE false;
--> 0
FROM t ORDER BY id;
--> 1 | 8 | W | NULL
--> 2 | 7 | W | 200

--= MERGE sets DEFAULT

MERGE INTO t USING (SELECT 3 AS id, 4 AS x) AS s ON t.id = s.id
    WHEN NOT MATCHED THEN INSERT (id, x) VALUES (s.id, s.x);
--> 1
MERGE INTO t USING (SELECT 4 AS id, 4 AS x) AS s ON t.id = s.id
    WHEN NOT MATCHED THEN INSERT (id, v, w) VALUES (s.id, DEFAULT, s.x);
--> 1
MERGE INTO t USING (SELECT 5 AS id, 4 AS x) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT BY NAME;
--> 1
MERGE INTO t USING (SELECT 6 AS id, 4 AS x) AS s ON t.id = s.id
    WHEN NOT MATCHED THEN INSERT VALUES (s.id, DEFAULT, DEFAULT, s.x);
--> 1
MERGE INTO t USING (SELECT 7 AS id, 1 AS a, 'b' AS b, 2 AS c) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
--> 1
MERGE INTO t USING (SELECT 8 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id + 1)
    RETURNING *;
--> 9 | 7 | W | NULL
MERGE INTO t USING (SELECT 99 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT DEFAULT VALUES;
--> 1
MERGE INTO t USING (SELECT 1 AS id, 4 AS x) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = DEFAULT, x = s.x;
--> 1
MERGE INTO t USING (SELECT 2 AS id) AS s USING (id) WHEN MATCHED THEN UPDATE SET (v, w) = (DEFAULT, DEFAULT);
--> 1
MERGE INTO t USING (SELECT 2 AS id, 5 AS n) AS s ON t.id = s.id
    WHEN MATCHED AND n > 5 THEN DELETE
    WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN UPDATE SET w = DEFAULT, v = 70;
--> 1
MERGE INTO t USING (SELECT 98 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (v, w) VALUES (DEFAULT, DEFAULT);
--> 1
FROM t ORDER BY id;
--> 1 | 7 | a | 4
--> 2 | 7 | W | 200
--> 3 | 7 | W | 4
--> 4 | 7 | 4 | NULL
--> 5 | 70 | W | 4
--> 6 | 7 | W | 4
--> 7 | 1 | b | 2
--> 9 | 7 | W | NULL
--> NULL | 7 | W | NULL
--> NULL | 7 | W | NULL

--= ON CONFLICT sets DEFAULT in both arms

CREATE TABLE lance.k (id INTEGER PRIMARY KEY DEFAULT 1, v INTEGER DEFAULT 7, w VARCHAR DEFAULT 'w', x INTEGER);
INSERT INTO k VALUES (1, 10, 'a', 100), (2, 20, 'b', 200);
--> 2
INSERT INTO k (id) VALUES (1), (3) ON CONFLICT (id) DO UPDATE SET v = excluded.v, x = excluded.x RETURNING *;
--> 1 | 7 | a | NULL
--> 3 | 7 | w | NULL
INSERT INTO k (id, v) VALUES (2, 5) ON CONFLICT DO UPDATE SET w = DEFAULT, x = DEFAULT, v = excluded.v;
--> 1
INSERT INTO k (id, v) VALUES (2, 5), (4, DEFAULT) ON CONFLICT (id) DO UPDATE SET (v, w) = (DEFAULT, 'z') WHERE k.id < 9;
--> 2
INSERT INTO k (x) VALUES (5) ON CONFLICT (id) DO UPDATE SET x = excluded.x;
--> 1
FROM k ORDER BY id;
--> 1 | 7 | a | 5
--> 2 | 7 | z | NULL
--> 3 | 7 | w | NULL
--> 4 | 7 | w | NULL
INSERT OR REPLACE INTO k (id) VALUES (2), (5);
--> 2
INSERT OR REPLACE INTO k (id, w) VALUES (1, DEFAULT), (DEFAULT, 'y'), (6, 'u');
--> 2
INSERT OR REPLACE INTO k (id, w) VALUES (1, DEFAULT), (6, 'u');
--> 2
INSERT OR IGNORE INTO k DEFAULT VALUES;
--> 0
INSERT OR REPLACE INTO k BY NAME SELECT 3 AS id, 6 AS x UNION ALL SELECT 7, 8;
--> 2
INSERT INTO k BY NAME SELECT 3 AS id, 9 AS x ON CONFLICT (id) DO UPDATE SET v = excluded.v;
--! excluded
INSERT INTO k (id, v) VALUES (7, 1), (8, DEFAULT) ON CONFLICT DO NOTHING RETURNING id, v, w;
--> 8 | 7 | w
FROM k ORDER BY id;
--> 1 | 7 | w | 5
--> 2 | 7 | z | NULL
--> 3 | 7 | w | 6
--> 4 | 7 | w | NULL
--> 5 | 7 | w | NULL
--> 6 | 7 | u | NULL
--> 7 | 7 | w | 8
--> 8 | 7 | w | NULL
INSERT OR REPLACE INTO k DEFAULT VALUES;
--> 1
FROM k WHERE id = 1;
--> 1 | 7 | w | NULL

--= COPY sets columns that it does not name

COPY (SELECT 3 AS id, 'c' AS w) TO '{folder}/rows.csv';
--> 1
COPY t (id, w) FROM '{folder}/rows.csv';
--> 1
COPY (SELECT 4 AS id) TO '{folder}/rows.parquet' (FORMAT parquet);
--> 1
COPY t (ID) FROM '{folder}/rows.parquet' (FORMAT parquet);
--> 1
FROM t WHERE id > 2 ORDER BY id;
--> 3 | 7 | c | NULL
--> 4 | 7 | W | NULL

--= a default that is not null fills a column that must not be null

CREATE TABLE lance.n (id INTEGER NOT NULL DEFAULT 5, v VARCHAR NOT NULL DEFAULT 'v', w INTEGER);
INSERT INTO n (w) VALUES (1);
--> 1
INSERT INTO n (w) SELECT 2;
--> 1
INSERT INTO n (id, w) VALUES (NULL, 3);
--! Error
INSERT INTO n DEFAULT VALUES;
--> 1
FROM n ORDER BY w;
--> 5 | v | 1
--> 5 | v | 2
--> 5 | v | NULL

--= DESCRIBE shows DEFAULT in DuckDB's normal form
--each form: OR REPLACE TABLE | TABLE IF NOT EXISTS

CREATE {form} lance.forms (
    a INTEGER DEFAULT 1+2*3, b VARCHAR NOT NULL DEFAULT 'it''s', c DOUBLE DEFAULT random(), d TIMESTAMP DEFAULT now(),
    e DATE DEFAULT current_date, f DECIMAL(9, 2) DEFAULT 1.5, g INTEGER DEFAULT NULL, h INTEGER DEFAULT -3,
    i UUID DEFAULT uuid(), j VARCHAR DEFAULT CASE WHEN 1 > 2 THEN 'x' ELSE lower('Y') END, k INTEGER
);
DESCRIBE forms;
--> a | INTEGER | YES | NULL | (1 + (2 * 3)) | NULL
--> b | VARCHAR | NO | NULL | 'it''s' | NULL
--> c | DOUBLE | YES | NULL | random() | NULL
--> d | TIMESTAMP | YES | NULL | now() | NULL
--> e | DATE | YES | NULL | current_date | NULL
--> f | DECIMAL(9,2) | YES | NULL | 1.5 | NULL
--> g | INTEGER | YES | NULL | NULL | NULL
--> h | INTEGER | YES | NULL | -3 | NULL
--> i | UUID | YES | NULL | uuid() | NULL
--> j | VARCHAR | YES | NULL | CASE  WHEN ((1 > 2)) THEN ('x') ELSE lower('Y') END | NULL
--> k | INTEGER | YES | NULL | NULL | NULL
INSERT INTO forms (k) VALUES (1), (2);
--> 2
SELECT a, b, f, g, h, j, count(DISTINCT c), count(DISTINCT i), count(DISTINCT d), bool_and(e = d::DATE)
    FROM forms GROUP BY ALL;
--> 7 | it's | 1.50 | NULL | -3 | y | 2 | 2 | 1 | true

--= values have the type of the column

CREATE TABLE lance.kinds (
    a INTEGER DEFAULT 1.7, b VARCHAR DEFAULT 5, c BOOLEAN DEFAULT true, d INTEGER[] DEFAULT [1, 2],
    e STRUCT(x INTEGER, y VARCHAR) DEFAULT {'x': 1, 'y': 'z'}, f MAP(VARCHAR, INTEGER) DEFAULT MAP {'a': 1},
    g BLOB DEFAULT '\x01'::BLOB, h TIME DEFAULT '01:02:03', i TIMESTAMP DEFAULT '2020-01-02', j DOUBLE DEFAULT 1e0,
    k FLOAT[2] DEFAULT [1, 2], l TINYINT DEFAULT 5 % 3, m DATE DEFAULT DATE '2020-01-02', n HUGEINT DEFAULT 9
);
INSERT INTO kinds DEFAULT VALUES;
--> 1
INSERT INTO kinds (l) VALUES (DEFAULT);
--> 1
INSERT INTO kinds (l) SELECT 2;
--> 1
UPDATE kinds SET a = DEFAULT, e = DEFAULT, k = DEFAULT, d = DEFAULT;
--> 3
SELECT DISTINCT * EXCLUDE (l) FROM kinds;
--> 2 | 5 | true | [1, 2] | {'x': 1, 'y': 'z'} | {'a': 1} | b'\x01' | 01:02:03 | 2020-01-02 00:00:00 | 1.0 | (1.0, 2.0) | 2020-01-02 | 9

--= DEFAULT with other rows is an error
--each value: (SELECT 1) | 1 + (SELECT 1) | EXISTS (SELECT 1) | ARRAY (SELECT 1) | id | sum(1) | row_number() OVER () | nope() | unnest([1]) | ? | (FROM t)

CREATE TABLE lance.other (id INTEGER, b INTEGER DEFAULT {value});
--! Error
ALTER TABLE lance.t ALTER v SET DEFAULT {value};
--! Error
FROM other;
--! Error
DESCRIBE t;
--> id | INTEGER | YES | NULL | NULL | NULL
--> v | INTEGER | YES | NULL | 7 | NULL
--> w | VARCHAR | YES | NULL | upper('w') | NULL
--> x | INTEGER | YES | NULL | NULL | NULL
ALTER TABLE lance.t ADD COLUMN z INTEGER DEFAULT {value};
--! Error

--= errors have DuckDB's words

CREATE TABLE lance.other (id INTEGER DEFAULT (SELECT 1));
--! BinderException: … DEFAULT value cannot contain subqueries
CREATE TABLE lance.other (a INTEGER, id INTEGER DEFAULT a);
--! BinderException: … DEFAULT value cannot contain column names
CREATE TABLE lance.other (id INTEGER DEFAULT sum(1));
--! BinderException: … DEFAULT value cannot contain aggregates
CREATE TABLE lance.other (id INTEGER DEFAULT nope());
--! CatalogException: … Scalar Function with name nope does not exist
ALTER TABLE lance.t ALTER x SET DEFAULT (SELECT 1);
--! BinderException: … DEFAULT value cannot contain subqueries
ALTER TABLE lance.t ALTER x SET DEFAULT id;
--! BinderException: … DEFAULT value cannot contain column names
ALTER TABLE lance.t ALTER nope SET DEFAULT 1;
--! nope
ALTER TABLE lance.t ALTER nope DROP DEFAULT;
--! nope
ALTER TABLE IF EXISTS lance.nope ALTER x SET DEFAULT 1;

--= a default of a wrong type is an error of the statement that uses it

CREATE TABLE lance.wrong (id INTEGER, a INTEGER DEFAULT 'x', b TINYINT DEFAULT 1000, c INTEGER DEFAULT [1]);
INSERT INTO wrong VALUES (1, 2, 3, 4);
--> 1
INSERT INTO wrong (id, b, c) VALUES (1, 2, 3);
--! ConversionException: … Could not convert string 'x' to INT32
INSERT INTO wrong (id, a, c) VALUES (1, 2, 3);
--! ConversionException: … out of range
INSERT INTO wrong (id, a, b) SELECT 1, 2, 3;
--! ConversionException
UPDATE wrong SET a = DEFAULT;
--! ConversionException
ALTER TABLE wrong ADD COLUMN d INTEGER DEFAULT 'x';
--! Could not convert string 'x' to INT32
FROM wrong;
--> 1 | 2 | 3 | 4

--= ALTER TABLE sets and drops DEFAULT

ALTER TABLE lance.t ALTER COLUMN x SET DEFAULT 1+1;
ALTER TABLE lance.t ALTER v DROP DEFAULT;
ALTER TABLE lance.t ALTER id DROP DEFAULT;
ALTER TABLE lance.t ALTER w SET DEFAULT 'z';
INSERT INTO t (id) VALUES (3);
--> 1
FROM t ORDER BY id;
--> 1 | 10 | a | 100
--> 2 | 20 | b | 200
--> 3 | NULL | z | 2
DESCRIBE t;
--> id | INTEGER | YES | NULL | NULL | NULL
--> v | INTEGER | YES | NULL | NULL | NULL
--> w | VARCHAR | YES | NULL | 'z' | NULL
--> x | INTEGER | YES | NULL | (1 + 1) | NULL

--= ADD COLUMN fills existing and later rows

ALTER TABLE lance.t ADD COLUMN y INTEGER DEFAULT 3;
ALTER TABLE lance.t ADD COLUMN IF NOT EXISTS z VARCHAR DEFAULT 'a' || 'b';
ALTER TABLE lance.t ADD COLUMN IF NOT EXISTS z VARCHAR DEFAULT 'c';
ALTER TABLE lance.t ADD COLUMN r DOUBLE DEFAULT random();
ALTER TABLE lance.t ADD COLUMN n INTEGER DEFAULT NULL;
ALTER TABLE lance.t ADD COLUMN d TIMESTAMP DEFAULT now();
INSERT INTO t (id) VALUES (3);
--> 1
SELECT id, y, z, n FROM t ORDER BY id;
--> 1 | 3 | ab | NULL
--> 2 | 3 | ab | NULL
--> 3 | 3 | ab | NULL
SELECT count(DISTINCT r), count(DISTINCT d), count(r) FROM t;
--> 3 | 2 | 3

--= changes of a column keep its DEFAULT

ALTER TABLE lance.t RENAME v TO vv;
ALTER TABLE lance.t ALTER vv SET NOT NULL;
ALTER TABLE lance.t ALTER w DROP NOT NULL;
ALTER TABLE lance.t ALTER vv TYPE BIGINT;
ALTER TABLE lance.t DROP COLUMN x;
UPDATE t SET vv = 1 WHERE id = 1;
--> 1
DELETE FROM t WHERE id = 2;
--> 1
INSERT INTO t (id) VALUES (3);
--> 1
FROM t ORDER BY id;
--> 1 | 1 | a
--> 3 | 7 | W
DESCRIBE t;
--> id | INTEGER | YES | NULL | NULL | NULL
--> vv | BIGINT | NO | NULL | 7 | NULL
--> w | VARCHAR | YES | NULL | upper('w') | NULL
ALTER TABLE lance.t RENAME TO u;
INSERT INTO u (id) VALUES (4);
--> 1
FROM u WHERE id = 4;
--> 4 | 7 | W

--= a nested field fills existing rows only

CREATE TABLE lance.s (id INTEGER, s STRUCT(a INTEGER) DEFAULT {'a': 8});
INSERT INTO s VALUES (1, {'a': 1}), (2, NULL);
--> 2
ALTER TABLE lance.s ADD COLUMN s.k INTEGER DEFAULT 4;
INSERT INTO s VALUES (3, {'a': 2, 'k': NULL});
--> 1
FROM s ORDER BY id;
--> 1 | {'a': 1, 'k': 4}
--> 2 | NULL
--> 3 | {'a': 2, 'k': None}
ALTER TABLE lance.s ALTER s.k SET DEFAULT 3;
--! Error
ALTER TABLE lance.s ALTER s.k DROP DEFAULT;
--! Error

--= a transaction applies DEFAULT in each of its statements

BEGIN;
INSERT INTO t (id) VALUES (3);
--> 1
INSERT INTO t (id, v) VALUES (4, DEFAULT), (5, 1);
--> 2
UPDATE t SET v = DEFAULT WHERE id = 1;
--> 1
MERGE INTO t USING (SELECT 6 AS id) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id);
--> 1
INSERT INTO t BY NAME SELECT 7 AS id;
--> 1
FROM t ORDER BY id;
--> 1 | 7 | a | 100
--> 2 | 20 | b | 200
--> 3 | 7 | W | NULL
--> 4 | 7 | W | NULL
--> 5 | 1 | W | NULL
--> 6 | 7 | W | NULL
--> 7 | 7 | W | NULL
COMMIT;
SELECT sum(v), count(*) FROM t;
--> 56 | 7

--= now() is the begin of the transaction

CREATE TABLE lance.times (id INTEGER, d TIMESTAMP DEFAULT now(), e TIMESTAMPTZ DEFAULT current_timestamp);
BEGIN;
INSERT INTO times (id) VALUES (1), (2);
--> 2
INSERT INTO times (id) SELECT 3;
--> 1
UPDATE times SET d = DEFAULT WHERE id = 1;
--> 1
SELECT count(DISTINCT d), count(DISTINCT e) FROM times;
--> 1 | 1
COMMIT;

--= a column that is called like a function does not change DEFAULT

CREATE TABLE lance.named (id INTEGER, "current_date" VARCHAR, "user" INTEGER, d DATE DEFAULT current_date, e VARCHAR DEFAULT user);
INSERT INTO named VALUES (1, 'x', 5, NULL, NULL);
--> 1
UPDATE named SET d = DEFAULT, e = DEFAULT;
--> 1
INSERT INTO named (id, "current_date", "user") VALUES (2, 'x', 1 + 5);
--> 1
INSERT INTO named (id, "current_date", "user") SELECT 3, 'x', 6;
--> 1
SELECT id, d = current_date(), e = "user"() FROM named ORDER BY id;
--> 1 | true | true
--> 2 | true | true
--> 3 | true | true

--= prepared statements and variables

PREPARE add AS INSERT INTO t (id, v) VALUES ($1, DEFAULT);
EXECUTE add(3);
--> 1
PREPARE more AS INSERT INTO t (id) SELECT $1;
EXECUTE more(4);
--> 1
PREPARE reset AS UPDATE t SET w = DEFAULT WHERE id = $1;
EXECUTE reset(1);
--> 1
SET VARIABLE size = 3;
ALTER TABLE lance.t ALTER x SET DEFAULT getvariable('size');
INSERT INTO t (id) VALUES (5);
--> 1
SET VARIABLE size = 4;
INSERT INTO t (id) VALUES (6);
--> 1
FROM t ORDER BY id;
--> 1 | 10 | W | 100
--> 2 | 20 | b | 200
--> 3 | 7 | W | NULL
--> 4 | 7 | W | NULL
--> 5 | 7 | W | 3
--> 6 | 7 | W | 4

--= a query leaves DEFAULT out of a new table

CREATE TABLE lance.u AS FROM t;
--> 2
INSERT INTO u (id) VALUES (3);
--> 1
FROM u WHERE id = 3;
--> 3 | NULL | NULL | NULL

--= CREATE TABLE LIKE has the same defaults

--only lance
CREATE TABLE lance.u LIKE t;
--only lance
INSERT INTO u (id) VALUES (3);
--> 1
--only lance
FROM u;
--> 3 | 7 | W | NULL
--only lance
CREATE TEMP TABLE own (a INTEGER, b INTEGER DEFAULT 4);
--only lance
CREATE TABLE lance.v (LIKE own);
--only lance
INSERT INTO v (a) VALUES (3);
--> 1
--only lance
FROM v;
--> 3 | 4
