-- ALTER TABLE: columns.

CREATE TABLE lance.t AS FROM (VALUES (1, 'a'), (2, 'b')) v(id, name);
--> 2

ALTER TABLE lance.t ADD COLUMN price DOUBLE;

ALTER TABLE lance.t ADD COLUMN kind VARCHAR DEFAULT 'new';

ALTER TABLE lance.t ADD COLUMN IF NOT EXISTS kind INTEGER;

FROM t ORDER BY id;
--> 1 | a | NULL | new
--> 2 | b | NULL | new

ALTER TABLE lance.t RENAME COLUMN name TO title;

ALTER TABLE lance.t RENAME kind TO sort;

ALTER TABLE lance.t ALTER COLUMN id TYPE BIGINT;

ALTER TABLE lance.t DROP COLUMN price;

ALTER TABLE lance.t DROP COLUMN IF EXISTS price;

ALTER TABLE lance.t ALTER COLUMN title SET NOT NULL;

SELECT column_name, column_type FROM (DESCRIBE t) ORDER BY column_name;
--> id | BIGINT
--> sort | VARCHAR
--> title | VARCHAR

INSERT INTO t VALUES (3, NULL, 'x');
--! title

ALTER TABLE lance.t ALTER COLUMN title DROP NOT NULL;

INSERT INTO t VALUES (3, NULL, 'x');
--> 1

ALTER TABLE lance.t ALTER COLUMN title SET NOT NULL;
--! title

ALTER TABLE lance.t DROP COLUMN nope;
--! nope

ALTER TABLE lance.t ADD COLUMN id INTEGER;
--! id

FROM t ORDER BY id;
--> 1 | a | new
--> 2 | b | new
--> 3 | NULL | x

CREATE TABLE lance.defaults AS SELECT 1 AS id;
--> 1

-- A default may say NULL, and types that Arrow lacks stay what they are.
ALTER TABLE lance.defaults ADD COLUMN l INTEGER[] DEFAULT [7, NULL];

ALTER TABLE lance.defaults ADD COLUMN u UUID;

ALTER TABLE lance.defaults ADD COLUMN v INTEGER DEFAULT NULL;

SELECT id, l, u, v, typeof(u) FROM lance.defaults;
--> 1 | [7, None] | NULL | NULL | UUID

--only lance
CREATE INDEX id_index ON lance.defaults USING BTREE (id);

-- The type that a column has already changes nothing, an index included.
ALTER TABLE lance.defaults ALTER COLUMN id TYPE INTEGER;

-- DEFAULT does not depend on a row.
CREATE TABLE lance.rows AS SELECT 1 AS a, {'x': 2} AS s;
--> 1
ALTER TABLE lance.rows ADD COLUMN b INTEGER DEFAULT a;
--! BinderException
ALTER TABLE lance.rows ADD COLUMN b INTEGER DEFAULT (a + 1);
--! BinderException
ALTER TABLE lance.rows ADD COLUMN b INTEGER DEFAULT s.x;
--! BinderException
ALTER TABLE lance.rows ADD COLUMN b INTEGER DEFAULT lower(a::VARCHAR);
--! BinderException
ALTER TABLE lance.rows ADD COLUMN b INTEGER DEFAULT (SELECT 1);
--! BinderException
ALTER TABLE lance.rows ADD COLUMN b INTEGER DEFAULT sum(1);
--! BinderException
ALTER TABLE lance.rows ADD COLUMN b INTEGER DEFAULT row_number() OVER ();
--! BinderException
ALTER TABLE lance.rows ADD COLUMN b INTEGER DEFAULT rowid;
--! BinderException
ALTER TABLE lance.rows ADD COLUMN s.y INTEGER DEFAULT s.x;
--! BinderException
ALTER TABLE lance.rows ADD COLUMN b INTEGER DEFAULT nope();
--! CatalogException
SELECT a, s FROM lance.rows;
--> 1 | {'x': 2}

-- Errors about types name the column.
--only lance
ALTER TABLE lance.rows ADD COLUMN stay INTERVAL;
--! UnsupportedError: column 'stay': … INTERVAL
--only lance
ALTER TABLE lance.rows ADD COLUMN stay INTERVAL DEFAULT INTERVAL 1 DAY;
--! UnsupportedError: column 'stay'
--only lance
ALTER TABLE lance.rows ADD COLUMN s.stay INTERVAL;
--! UnsupportedError: column 's.stay': … INTERVAL
--only lance
ALTER TABLE lance.rows ALTER COLUMN a TYPE INTERVAL;
--! UnsupportedError: column 'a': … INTERVAL

-- A new type is a CAST of all values.
CREATE TABLE lance.kinds AS SELECT * FROM (VALUES
    (1, 12::BIGINT, '7', 1.25::DECIMAL(5, 2), DATE '2020-02-03', 0.5::FLOAT, TIMESTAMP '2020-02-03 04:05:06', true,
     'eeccb8c5-9943-b2bb-bb5e-222f4e14b687'::UUID, 'ab'::BLOB, [1, NULL], {'x': 1, 'y': 'a'}),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)) v(id, b, s, d, dt, f, ts, bo, u, bl, l, st);
--> 2
DELETE FROM lance.kinds WHERE id = 0;
--> 0
INSERT INTO lance.kinds (id, b, s, f) VALUES (3, 300, '8', 2.5);
--> 1
ALTER TABLE lance.kinds ALTER b TYPE DOUBLE;
ALTER TABLE lance.kinds ALTER b TYPE VARCHAR;
ALTER TABLE lance.kinds ALTER s TYPE INTEGER;
ALTER TABLE lance.kinds ALTER d TYPE DECIMAL(9, 3);
ALTER TABLE lance.kinds ALTER dt TYPE TIMESTAMP;
ALTER TABLE lance.kinds ALTER f TYPE DOUBLE;
ALTER TABLE lance.kinds ALTER ts TYPE DATE;
ALTER TABLE lance.kinds ALTER bo TYPE INTEGER;
ALTER TABLE lance.kinds ALTER u TYPE VARCHAR;
ALTER TABLE lance.kinds ALTER bl TYPE VARCHAR;
ALTER TABLE lance.kinds ALTER l TYPE VARCHAR[];
ALTER TABLE lance.kinds ALTER st TYPE STRUCT(y VARCHAR, z DOUBLE, x VARCHAR);
FROM lance.kinds ORDER BY id;
--> 1 | 12.0 | 7 | 1.250 | 2020-02-03 00:00:00 | 0.5 | 2020-02-03 | 1 | eeccb8c5-9943-b2bb-bb5e-222f4e14b687 | ab | ['1', None] | {'y': 'a', 'z': None, 'x': '1'}
--> 2 | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL
--> 3 | 300.0 | 8 | NULL | NULL | 2.5 | NULL | NULL | NULL | NULL | NULL | NULL
SELECT column_name, column_type FROM (DESCRIBE lance.kinds) WHERE column_name IN ('b', 'st') ORDER BY 1;
--> b | VARCHAR
--> st | STRUCT(y VARCHAR, z DOUBLE, x VARCHAR)

-- A value that does not convert changes nothing.
ALTER TABLE lance.kinds ALTER s TYPE TINYINT USING s * 100;
--! ConversionException
ALTER TABLE lance.kinds ALTER b TYPE DATE;
--! ConversionException
ALTER TABLE lance.kinds ALTER id TYPE DATE;
--! Unimplemented type for cast (INTEGER -> DATE)
ALTER TABLE lance.kinds ALTER st TYPE STRUCT(other INTEGER);
--! STRUCT to STRUCT cast must have at least one matching member
ALTER TABLE lance.kinds ALTER id TYPE nosuch;
--! Type with name nosuch does not exist!

-- USING computes the values of any columns.
ALTER TABLE lance.kinds ALTER s TYPE VARCHAR USING id || '/' || kinds.s || coalesce(st['y'], '-');
ALTER TABLE lance.kinds ALTER id TYPE BIGINT USING id * 10;
ALTER TABLE lance.kinds ALTER COLUMN d SET DATA TYPE INTEGER[] USING [id, d::INTEGER];
SELECT id, s, d FROM lance.kinds ORDER BY id;
--> 10 | 1/7a | [10, 1]
--> 20 | NULL | [20, None]
--> 30 | 3/8- | [30, None]
--only duckdb 2
ALTER TABLE lance.kinds ALTER bl TYPE VARCHAR USING bl || st.y;
ALTER TABLE lance.kinds ALTER id TYPE INTEGER USING (SELECT 1);
--! cannot use subquery in alter statement
ALTER TABLE lance.kinds ALTER id TYPE INTEGER USING sum(id);
--! aggregate functions are not allowed in alter statement
ALTER TABLE lance.kinds ALTER id TYPE INTEGER USING row_number() OVER ();
--! window functions are not allowed in alter statement
ALTER TABLE lance.kinds ALTER id TYPE INTEGER USING rowid;
--! Table does not contain column
ALTER TABLE lance.kinds ALTER id TYPE INTEGER USING nosuch;
--! Table does not contain column

-- NOT NULL holds for new values.
ALTER TABLE lance.kinds ALTER id SET NOT NULL;
ALTER TABLE lance.kinds ALTER id TYPE VARCHAR;
--only duckdb 2
ALTER TABLE lance.kinds ALTER id TYPE INTEGER USING NULL;
--! NOT NULL constraint failed: kinds.id
--only duckdb 2
ALTER TABLE lance.kinds ADD COLUMN nn INTEGER NOT NULL;
--! NOT NULL constraint failed: kinds.nn
--only duckdb 2
ALTER TABLE lance.kinds ADD COLUMN nn INTEGER DEFAULT NULL NOT NULL;
--! NOT NULL constraint failed: kinds.nn
--only duckdb 2
ALTER TABLE lance.kinds ADD COLUMN nn INTEGER NOT NULL DEFAULT 4;
--only duckdb 1
ALTER TABLE lance.kinds ADD COLUMN nn INTEGER NOT NULL;
--! Error
--only duckdb 2
SELECT id, nn FROM lance.kinds ORDER BY id;
--> 10 | 4
--> 20 | 4
--> 30 | 4
CREATE TABLE lance.nothing (a INTEGER, l STRUCT(x INTEGER)[]);
ALTER TABLE lance.nothing ALTER a TYPE DATE;
--only duckdb 2
ALTER TABLE lance.nothing ADD COLUMN nn INTEGER NOT NULL;
--only duckdb 1
ALTER TABLE lance.nothing ADD COLUMN nn INTEGER DEFAULT 3;
ALTER TABLE lance.nothing ADD COLUMN l.element.y INTEGER DEFAULT 3;
INSERT INTO lance.nothing VALUES ('2020-02-03', [{'x': 1, 'y': 2}], 5);
--> 1
FROM lance.nothing;
--> 2020-02-03 | [{'x': 1, 'y': 2}] | 5
