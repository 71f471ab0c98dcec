-- DELETE and TRUNCATE: rows that go.

CREATE TABLE lance.t AS SELECT range AS id, range % 3 AS kind FROM range(12);
--> 12

DELETE FROM t WHERE id = 1;
--> 1

DELETE FROM t AS x USING (VALUES (2), (2), (99)) gone(id) WHERE x.id = gone.id;
--> 1

DELETE FROM t WHERE kind = 0 AND id > (SELECT avg(id) FROM t);
--> 1

WITH few AS (SELECT max(id) AS id FROM t) DELETE FROM t WHERE id IN (FROM few);
--> 1

DELETE FROM t WHERE CASE WHEN kind = 2 THEN id > 7 ELSE false END;
--> 1

SELECT id FROM t ORDER BY id;
--> 0
--> 3
--> 4
--> 5
--> 6
--> 7
--> 10

DELETE FROM t WHERE id = 100;
--> 0

DELETE FROM t WHERE nope = 1;
--! nope

DELETE FROM t;
--> 7

INSERT INTO t VALUES (1, 1);
--> 1

TRUNCATE t;
--> 1

SELECT count(*) FROM t;
--> 0
