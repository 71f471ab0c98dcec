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
