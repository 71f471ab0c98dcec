-- INSERT: rows that are added.

CREATE TABLE lance.t (id INTEGER NOT NULL, name VARCHAR, price DOUBLE);

INSERT INTO t VALUES (1, 'a', 1.5), (2, NULL, NULL);
--> 2

-- A column that is left out is null.
INSERT INTO t (name, id) VALUES ('c', 3);
--> 1

INSERT INTO t BY NAME SELECT 4 AS id, 2.5 AS price;
--> 1

INSERT INTO t VALUES (5, DEFAULT, DEFAULT);
--> 1

WITH more AS (SELECT max(id) + 1 AS id FROM t) INSERT INTO t SELECT id, 'w', id FROM more;
--> 1

-- A table may be its own source: it is read as it was before.
INSERT INTO t SELECT id + 10, name, price FROM t WHERE id > 4;
--> 2

FROM t ORDER BY id;
--> 1 | a | 1.5
--> 2 | NULL | NULL
--> 3 | c | NULL
--> 4 | NULL | 2.5
--> 5 | NULL | NULL
--> 6 | w | 6.0
--> 15 | NULL | NULL
--> 16 | w | 6.0

-- Nothing to insert.
INSERT INTO t SELECT * FROM t WHERE false;
--> 0

-- Values are cast as DuckDB casts them, or refused.
INSERT INTO t VALUES ('7', 8, 9);
--> 1

FROM t WHERE id = 7;
--> 7 | 8 | 9.0

INSERT INTO t VALUES ('x', '', 0);
--! Could not convert string 'x' to INT32

INSERT INTO t VALUES (1, 'a');
--! expected 3 values

INSERT INTO t (id, nope) VALUES (1, 2);
--! nope

INSERT INTO t (name) VALUES ('no id');
--! id

SELECT count(*) FROM t;
--> 9

-- Without rows no value is missing.
CREATE TABLE lance.strict (id INTEGER NOT NULL, name VARCHAR);

INSERT INTO lance.strict (name) SELECT 'x' WHERE false;
--> 0

--only lance
INSERT INTO lance.strict (name) SELECT 'x';
--! id
