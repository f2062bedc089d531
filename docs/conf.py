"""How Sphinx makes the site: `make docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import inprofile

project = "Inprofile"
author = "Inprofile contributors"
copyright = author  # noqa: A001 (Sphinx's name)
version = release = inprofile.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "from_code", "of_papers"]
# What is of use to those who change it only stays in the repository.
exclude_patterns = ["images/*.py", "_ext", "decisions", "readings/wrong-laws.md"]
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4
# Pages in no toctree are found by search and links; the change log has levels of its own.
suppress_warnings = ["myst.header", "toc.not_included"]

# Docstrings write `names` in single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "undoc-members": False}
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "Inprofile"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
pygments_style = "friendly"
pygments_dark_style = "monokai"
