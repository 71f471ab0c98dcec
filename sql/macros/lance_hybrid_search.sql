-- lance_hybrid_search: the rows of a Lance table that are near to a vector, or match words, or both; best first, with
-- `_distance` and `_score` (NULL where that search did not find the row) and `_hybrid_score`.
--
--   table_name         folder or URI of the table; on a connection made by lance_duck.connect also the name of a table
--   vector_column      column of vectors
--   query_vector       as many numbers as a vector of the column has
--   text_column        column of texts
--   query              words, as for lance_fts
--   k                  rows that are found at most
--   alpha              weight of the vector in 'linear', 0 to 1
--   oversample_factor  each search finds so many times k candidates
--   method             'linear': alpha * (1 - distance) + (1 - alpha) * score, each scaled to 0..1 over its candidates;
--                      'rrf': the sum of 1 / (60 + rank), ranks from 0
--   nprobs, nprobes, refine_factor, ef, recall, metric, use_index, explain_verbose   as for lance_vector_search
--   prefilter, filter, version, tag, asof, branch   as for lance_vector_search, in both searches
--
-- WHERE applies to the rows found; if `prefilter := true` is written, it chooses among all rows. Arguments are
-- constants or parameters, never columns.
-- Example: FROM lance_hybrid_search('data/books.lance', 'vec', [0.1, 0.7]::FLOAT[], 'body', 'whale ship', k := 5)
CREATE OR REPLACE TEMP MACRO lance_hybrid_search(
    table_name, vector_column, query_vector, text_column, query, k := 10, alpha := 0.5, oversample_factor := 4,
    "method" := 'linear', nprobs := NULL, nprobes := NULL, refine_factor := NULL, ef := NULL, metric := NULL,
    use_index := true, prefilter := true, "filter" := NULL, version := NULL, tag := NULL, "asof" := NULL,
    branch := NULL, explain_verbose := NULL, recall := NULL
) AS TABLE
    FROM query(__lance_hybrid(
        table_name::VARCHAR, vector_column::VARCHAR, query_vector::VARCHAR, text_column::VARCHAR, query::VARCHAR,
        k::BIGINT, alpha::DOUBLE, oversample_factor::BIGINT, "method"::VARCHAR, coalesce(nprobes, nprobs)::BIGINT,
        refine_factor::BIGINT, ef::BIGINT, metric::VARCHAR, use_index::BOOLEAN, prefilter::BOOLEAN, "filter"::VARCHAR,
        [
            version::VARCHAR, tag::VARCHAR,
            coalesce(strftime(make_timestamp(epoch_us(TRY_CAST("asof" AS TIMESTAMPTZ))), '%Y-%m-%d %H:%M:%S.%f+00:00'), "asof"::VARCHAR),
            branch::VARCHAR
        ],
        recall::DOUBLE, current_setting('search_path')
    ));
