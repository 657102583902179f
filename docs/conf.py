"""Sphinx: the pages of docs/ and results/ as one site (``make docs``)."""

from cores import __version__

project = "cores-gnn"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]

# The root is the checkout, so that links between docs/ and results/ hold on the site, too.
root_doc = "docs/index"
include_patterns = ["docs/*", "results/*.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]
exclude_patterns = [".*", "benchmarks", "examples", "runs", "site", "src", "tests", "tools"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"

html_theme = "furo"
html_title = "cores-gnn"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_show_copyright = False
html_show_sourcelink = False
copybutton_exclude = ".linenos, .gp, .go"
