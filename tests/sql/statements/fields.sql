-- ALTER TABLE: fields of structs, in lists and maps, too.

CREATE TABLE lance.t AS SELECT * FROM (VALUES
    (1, {'i': 1, 'j': {'x': 1, 'y': 'q'}}, [{'k': 1, 'm': 2}, NULL], {'solo': 1}),
    (2, NULL, NULL, NULL),
    (3, {'i': NULL, 'j': NULL}, [], {'solo': NULL})) v(id, s, l, o);
--> 3

ALTER TABLE lance.t DROP COLUMN s.i;

SELECT s, l FROM t ORDER BY id;
--> {'j': {'x': 1, 'y': 'q'}} | [{'k': 1, 'm': 2}, None]
--> NULL | NULL
--> {'j': None} | []

ALTER TABLE lance.t DROP COLUMN IF EXISTS s.nothing;

ALTER TABLE lance.t DROP COLUMN IF EXISTS nothing.s;

ALTER TABLE lance.t DROP s.nothing;
--! Cannot drop field "nothing" - it does not exist

ALTER TABLE lance.t DROP COLUMN id.x;
--! Cannot drop field from column "id" - not a nested type

ALTER TABLE lance.t DROP COLUMN IF EXISTS id.x;
--! Cannot drop field from column "id" - not a nested type

ALTER TABLE lance.t DROP COLUMN o.solo;
--! Cannot drop field solo from column o - it is the last field of the struct

ALTER TABLE lance.t DROP COLUMN l.element;
--! Cannot drop field "element" from column "l" - it's not a struct

ALTER TABLE lance.t DROP COLUMN l.k;
--! Cannot drop field "k" - it does not exist

ALTER TABLE lance.t DROP COLUMN "s.j";
--! s.j

ALTER TABLE lance.t DROP COLUMN IF EXISTS "s.j";

ALTER TABLE lance.t DROP COLUMN l.element.k CASCADE;

ALTER TABLE lance.t DROP COLUMN s."J".X RESTRICT;

SELECT s, l, o FROM t ORDER BY id;
--> {'j': {'y': 'q'}} | [{'m': 2}, None] | {'solo': 1}
--> NULL | NULL | NULL
--> {'j': None} | [] | {'solo': None}

ALTER TABLE lance.t ADD COLUMN s.k INTEGER;

ALTER TABLE lance.t ADD COLUMN IF NOT EXISTS s.k VARCHAR;

ALTER TABLE lance.t ADD COLUMN s.j."q.r" INTEGER DEFAULT 2 + 3;

ALTER TABLE lance.t ADD COLUMN l.element.n VARCHAR;

ALTER TABLE lance.t ADD COLUMN s."K" INTEGER;
--! Duplicate field "K" - field already exists in struct "s"

ALTER TABLE lance.t ADD COLUMN "ID" INTEGER;
--! already exists

ALTER TABLE lance.t ADD COLUMN id.x INTEGER;
--! Column "id" is not a nested type

ALTER TABLE lance.t ADD COLUMN l.x INTEGER;
--! can only add fields to structs

SELECT s, l FROM t ORDER BY id;
--> {'j': {'y': 'q', 'q.r': 5}, 'k': None} | [{'m': 2, 'n': None}, None]
--> NULL | NULL
--> {'j': None, 'k': None} | []

ALTER TABLE lance.t RENAME COLUMN s.k TO kk;

ALTER TABLE lance.t RENAME s.j."q.r" TO r;

ALTER TABLE lance.t RENAME COLUMN l.element.m TO mm;

ALTER TABLE lance.t RENAME COLUMN s.kk TO "J";
--! Cannot rename field "kk" from column "s" to J - a field with this name already exists

ALTER TABLE lance.t RENAME COLUMN s.nosuch TO x;
--! Cannot rename field "nosuch" - it does not exist

ALTER TABLE lance.t RENAME COLUMN l.element TO x;
--! can only rename fields inside a struct

ALTER TABLE lance.t RENAME COLUMN id.x TO y;
--! Cannot rename field from column "id" - not a nested type

ALTER TABLE lance.t RENAME COLUMN o TO "S";
--! already exists

SELECT column_name, column_type FROM (DESCRIBE t) ORDER BY column_name;
--> id | INTEGER
--> l | STRUCT(mm INTEGER, n VARCHAR)[]
--> o | STRUCT(solo INTEGER)
--> s | STRUCT(j STRUCT(y VARCHAR, r INTEGER), kk INTEGER)

-- The fields without values stay alone, and what is null and how long lists are stays, too.

ALTER TABLE lance.t DROP COLUMN s.j;

ALTER TABLE lance.t DROP COLUMN l.element.mm;

SELECT s, l FROM t ORDER BY id;
--> {'kk': None} | [{'n': None}, None]
--> NULL | NULL
--> {'kk': None} | []

-- Fields in lists get their default in every item.

ALTER TABLE lance.t ADD COLUMN l.element.d INTEGER DEFAULT 7;

ALTER TABLE lance.t ADD COLUMN s.e INTEGER NULL;

SELECT l, s FROM t ORDER BY id;
--> [{'n': None, 'd': 7}, None] | {'kk': None, 'e': None}
--> NULL | NULL
--> [] | {'kk': None, 'e': None}
