-- RETURNING: the rows of a change.

CREATE TABLE lance.t AS FROM (VALUES (1, 'a'), (2, 'b'), (3, NULL)) v(id, name);
--> 3

INSERT INTO t VALUES (4, 'd'), (5, 'e') RETURNING *;
--> 4 | d
--> 5 | e

INSERT INTO t (id) VALUES (6) RETURNING id + 1 AS more, name, t.id::VARCHAR || '!';
--> 7 | NULL | 6!

-- Updated rows are returned as they are now, deleted rows as they were.
UPDATE t SET name = 'n' || id WHERE name IS NULL RETURNING id, name;
--> 3 | n3
--> 6 | n6

DELETE FROM t WHERE id > 4 RETURNING id, upper(name);
--> 5 | E
--> 6 | N6

DELETE FROM t WHERE id > 100 RETURNING *;

UPDATE t SET id = id RETURNING nope;
--! nope

FROM t ORDER BY id;
--> 1 | a
--> 2 | b
--> 3 | n3
--> 4 | d
