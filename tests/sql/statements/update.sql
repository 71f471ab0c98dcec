-- UPDATE: values of rows that are there.

CREATE TABLE lance.t AS FROM (VALUES (1, 'a', [1]), (2, 'b', NULL), (3, NULL, [])) v(id, name, list);
--> 3

UPDATE t SET name = upper(name) WHERE id < 3;
--> 2

-- All expressions see the row as it was.
UPDATE t SET id = id * 10, list = [id] WHERE name = 'A';
--> 1

UPDATE t SET (name, list) = ('z', NULL) WHERE name IS NULL;
--> 1

UPDATE t AS x SET name = x.name || s.more FROM (VALUES (2, '!'), (10, '?')) s(id, more) WHERE x.id = s.id;
--> 2

UPDATE t SET list = DEFAULT WHERE id = 10;
--> 1

UPDATE t SET id = (SELECT max(id) FROM t) + id WHERE id = 3;
--> 1

WITH few AS (SELECT min(id) AS id FROM t) UPDATE t SET list = [0] WHERE id IN (FROM few);
--> 1

FROM t ORDER BY id;
--> 2 | B! | [0]
--> 10 | A? | NULL
--> 13 | z | NULL

UPDATE t SET name = '' WHERE false;
--> 0

UPDATE t SET nope = 1;
--! nope

UPDATE t SET id = 'x';
--! Could not convert string 'x' to INT32

UPDATE t SET name = NULL;
--> 3

SELECT count(name) FROM t;
--> 0
