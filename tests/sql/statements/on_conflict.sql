-- INSERT … ON CONFLICT, OR REPLACE and OR IGNORE, by a primary key.

CREATE TABLE lance.t (id INTEGER PRIMARY KEY, name VARCHAR, n INTEGER);

INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2);
--> 2

INSERT INTO t VALUES (2, 'B', 20), (3, 'c', 3) ON CONFLICT DO NOTHING;
--> 1

INSERT INTO t VALUES (1, 'A', 10), (4, 'd', 4) ON CONFLICT (id) DO UPDATE SET name = excluded.name;
--> 2

INSERT INTO t VALUES (1, 'x', 5), (2, 'y', 5) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n WHERE t.id = 1;
--> 1

INSERT OR REPLACE INTO t VALUES (3, 'C', 30), (5, 'e', 5);
--> 2

INSERT OR IGNORE INTO t VALUES (5, 'E', 50), (6, 'f', 6);
--> 1

INSERT INTO t (id, n) SELECT id, n * 100 FROM t WHERE id < 3 ON CONFLICT (id) DO UPDATE SET n = excluded.n
RETURNING id, n;
--> 1 | 600
--> 2 | 200

FROM t ORDER BY id;
--> 1 | A | 600
--> 2 | b | 200
--> 3 | C | 30
--> 4 | d | 4
--> 5 | e | 5
--> 6 | f | 6

INSERT INTO t VALUES (7, 'g', 7) ON CONFLICT (nope) DO NOTHING;
--! nope

-- BY NAME, excluded has the columns of the new rows alone.

INSERT INTO t BY NAME SELECT 9 AS n, 6 AS id ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n RETURNING *;
--> 6 | f | 15

INSERT INTO t BY NAME SELECT 9 AS n, 6 AS id ON CONFLICT (id) DO UPDATE SET name = excluded.name;
--! does not have a column named "name"

INSERT INTO t BY NAME SELECT 9 AS n, 6 AS id ON CONFLICT (id) DO UPDATE SET n = 0 WHERE excluded.name IS NULL;
--! does not have a column named "name"

INSERT INTO t (n, id) SELECT 9, 6 ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING *;
--> 6 | NULL | 15
