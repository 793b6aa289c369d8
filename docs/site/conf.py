"""The manual as a site: `./dev docs` builds it with Sphinx."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/site"))
sys.dont_write_bytecode = True

project = "braid"
version = release = re.search(r"VERSION (\d[\d.]*)", (ROOT / "CMakeLists.txt").read_text().partition("project(")[2])[1]
extensions = ["myst_parser", "sphinx_copybutton", "mathml", "reference"]
exclude_patterns = ["site"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
highlight_language = "text"
copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = f"braid {release}"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_search_summary = False  # it would be fetched, which browsers refuse for local files
html_theme_options = {"navigation_with_keys": True}


def join_scripts(app, exception):
    """Debian's furo has its script in two files, one of which imports the other, which browsers refuse for local files."""
    scripts = pathlib.Path(app.outdir, "_static/scripts")
    _, own = (scripts / "furo.js").read_text().split('import Gumshoe from "./gumshoe-patched.js";\n')
    (scripts / "furo.js").write_text((scripts / "gumshoe-patched.js").read_text() + own)


def setup(app):
    app.connect("build-finished", join_scripts)
