-- __lance_matching: a Lance table with columns that it does not store: which rows match words, and which rows they are.
--
--   path     name or path of the table
--   asked    the columns, as lance_duck writes them down
CREATE OR REPLACE TEMP MACRO __lance_matching(path, asked) AS TABLE
    FROM query(__lance_matches(path::VARCHAR, asked::VARCHAR));
