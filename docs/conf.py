"""Sphinx's settings for the documentation: `make docs` writes it to docs/_build/html."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import generated  # noqa: E402

import lance_duck  # noqa: E402

project = "lance-duck"
copyright = "the lance-duck developers"  # noqa: A001
version = release = lance_duck.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "generated/*.md"]

html_theme = "furo"
html_title = "lance-duck"
html_static_path = ["_static"]
html_css_files = ["site.css"]

nb_execution_mode = "off"  # the outputs are stored in the notebooks, and tests/notebooks runs them
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "member-order": "bysource", "show-inheritance": False}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"
autodoc_class_signature = "separated"
napoleon_google_docstring = True
napoleon_use_rtype = False
napoleon_custom_sections = ["Cause", "Remedy"]
default_role = "code"

suppress_warnings = ["myst.header"]

generated.write(Path(__file__).parent / "generated")
