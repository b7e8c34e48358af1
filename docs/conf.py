"""Sphinx settings; `make docs` builds with warnings as errors."""

project = "hardmax"
author = "The hardmax authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
html_theme = "furo"
html_title = "hardmax"
exclude_patterns = ["_build"]
napoleon_numpy_docstring = True
napoleon_google_docstring = False
autodoc_typehints = "none"
suppress_warnings = ["ref.python"]  # `path` as the type of a parameter is no cross-reference


def _bars(app, what, name, obj, options, lines):
    """Norms such as |x| are text, not substitutions."""
    lines[:] = [line if ">>>" in line else line.replace("|", r"\|") for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", _bars, priority=900)
