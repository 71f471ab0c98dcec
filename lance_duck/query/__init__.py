"""Full-text queries with pylance's names (see `lance_duck.scan.text.query`), and markup of their words in texts.

You hold: words and options. You get: validated queries, or texts with marked words (`marks`). Never here: searches.
"""

from lance_duck.scan.text.query.tree import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    DocumentGranularity,
    FullTextOperator,
    FullTextQuery,
    FullTextQueryType,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
    PrefixQuery,
)

__all__ = [
    "BooleanQuery",
    "BoostQuery",
    "CombinedFieldsQuery",
    "DocumentGranularity",
    "FullTextOperator",
    "FullTextQuery",
    "FullTextQueryType",
    "MatchQuery",
    "MultiMatchQuery",
    "Occur",
    "PhraseQuery",
    "PrefixQuery",
]
