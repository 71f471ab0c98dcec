"""What notebooks show: tables, plans and sizes as HTML, all names and values escaped.

You hold: names, values, text. You get: HTML, and a text that shows itself as HTML. Never here: tables of Lance.
"""

from lance_duck.markup.tables import facts_html, rows_html
from lance_duck.markup.texts import PlanText, size_text

__all__ = ["PlanText", "facts_html", "rows_html", "size_text"]
