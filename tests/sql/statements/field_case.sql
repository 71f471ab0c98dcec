-- Struct fields match without case, at any depth, and keep the names of the table.
CREATE TABLE lance.t (id INTEGER, s STRUCT(i INTEGER, "K" INTEGER), l STRUCT("K" INTEGER)[], m MAP(VARCHAR, STRUCT(a INTEGER[])));
CREATE TABLE lance.u (s STRUCT(x STRUCT("B" INTEGER)[], y INTEGER), f STRUCT("K" INTEGER)[2]);

--= INSERT
INSERT INTO lance.t VALUES (1, {'I': 1, 'k': 2}, [{'k': 3}, NULL], MAP {'x': {'A': [4]}});
--> 1
INSERT INTO lance.t SELECT 2, {'i': 1, 'k': 2}, [{'k': 3}], MAP {'x': {'A': NULL}};
--> 1
INSERT INTO lance.t BY NAME SELECT {'i': NULL, 'k': 7} AS s, 3 AS id;
--> 1
INSERT INTO lance.t (s) VALUES ({'k': 8}), ({'I': 9});
--> 2
INSERT INTO lance.u VALUES ({'X': [{'b': 1}], 'Y': 2}, [{'k': 1}, {'k': 2}]);
--> 1
SELECT * FROM t ORDER BY id NULLS LAST, s.i NULLS FIRST;
--> 1 | {'i': 1, 'K': 2} | [{'K': 3}, None] | {'x': {'a': [4]}}
--> 2 | {'i': 1, 'K': 2} | [{'K': 3}] | {'x': {'a': None}}
--> 3 | {'i': None, 'K': 7} | NULL | NULL
--> NULL | {'i': None, 'K': 8} | NULL | NULL
--> NULL | {'i': 9, 'K': None} | NULL | NULL
SELECT s.y, f[2]['K'] FROM u;
--> 2 | 2

--= UPDATE and MERGE
INSERT INTO lance.t VALUES (1, NULL, NULL, NULL), (2, NULL, NULL, NULL);
--> 2
UPDATE t SET s = {'I': id, 'k': 2}, l = [{'k': id}] WHERE id = 1;
--> 1
MERGE INTO t USING (SELECT 2 AS id, {'i': 5, 'k': 6} AS s) AS n ON t.id = n.id WHEN MATCHED THEN UPDATE SET s = n.s;
--> 1
MERGE INTO t USING (SELECT 3 AS id, {'i': 7, 'k': 8} AS s) AS n ON t.id = n.id WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n.id, n.s);
--> 1
SELECT id, s, l FROM t ORDER BY id;
--> 1 | {'i': 1, 'K': 2} | [{'K': 1}]
--> 2 | {'i': 5, 'K': 6} | NULL
--> 3 | {'i': 7, 'K': 8} | NULL
