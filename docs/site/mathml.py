"""Sphinx: equations as MathML, which browsers render without fonts or scripts."""

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml


def visit_inline(self, node):
    self.body.append(tex2mathml(node.astext(), inline=True))
    raise SkipNode


def visit_block(self, node):
    self.body.append(f'<div class="math">{tex2mathml(node.astext(), inline=False)}</div>')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True}
