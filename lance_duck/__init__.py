"""Lance tables as tables in DuckDB SQL."""
