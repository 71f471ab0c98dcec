"""Lance tables in Spark, without a jar: what PySpark users call."""
