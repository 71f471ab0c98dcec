-- lance_near_duplicates: pairs of rows of a Lance table whose texts are nearly equal.
--
--   table_name    folder or URI of the table; on connections of lance_duck.connect also its name
--   column_name   column of strings
--   threshold     smallest similarity: the share of common shingles of three words
--   equal_texts   'all' pairs; with 'first', equal texts are paired with the first of them only
--   version, tag, asof, branch, database   as for lance_info
--
-- Columns: "left" and "right" (row ids, left < right), similarity. Pairs of a similarity of 0.8 are found with a probability
-- of 95 %.
-- Example: FROM lance_near_duplicates('data/books.lance', 'body', threshold := 0.9)
CREATE OR REPLACE TEMP MACRO lance_near_duplicates(
    table_name, column_name, threshold := 0.8, equal_texts := 'all', version := NULL, tag := NULL, "asof" := NULL,
    branch := NULL, database := NULL
) AS TABLE
    FROM query(__lance_history(
        'near_duplicates', database::VARCHAR, table_name::VARCHAR,
        [version::VARCHAR, tag::VARCHAR, __lance_moment("asof"), branch::VARCHAR],
        [column_name::VARCHAR, threshold::DOUBLE::VARCHAR, equal_texts::VARCHAR], current_setting('search_path')
    ));
