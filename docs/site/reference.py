"""Sphinx: fills the pages of docs/reference with the public names of their headers."""

import itertools
import pathlib
import re

import public_names

PAGES = {  # page: its headers
    "core": r"core/",
    "autograd": r"autograd/(?!ops/)",
    "ops": r"autograd/ops/",
    "nn": r"nn/",
    "mhc": r"mhc/(?!ops/|connections/(released|history)/)",
    "mhc_ops": r"mhc/ops/",
    "released": r"mhc/connections/(released|history)/",
    "dist": r"dist/",
}


def page(which, headers):
    """The part of a page that follows its introduction, as reStructuredText."""
    chosen = {header: names for header, names in headers.items() if re.match(PAGES[which], header)}
    return "\n".join(line for header, names in chosen.items() for line in section(header, names)) + "\n"


def section(header, names):
    title = f"``<braid/{header}>``"
    lines = ["", title, "-" * len(title), ""]
    for scope, group in itertools.groupby(names, lambda name: name.scope):
        lines += [f".. cpp:namespace:: {scope}", "", *declarations(list(group))]
    return lines


def declarations(names):
    """Names that share a description share an entry: overloads, and the fields on one line."""
    names = [name for name in names if name.name != "params" and not name.node.findtext("argsstring", "").endswith("delete")]
    lines = []
    for (key, _), group in itertools.groupby(names, numbered(names)):
        group = list(group)
        first, *others = map(signature, group)
        directive = {"variable": "var", "typedef": "type", "enumvalue": "enumerator"}.get(key, key)
        head = f".. cpp:{directive}:: "
        lines += [head + first, *(" " * len(head) + other for other in others), ""]
        body = [line for paragraph in group[0].docstring for line in paragraph_lines(paragraph)]
        body += declarations(group[0].members)
        lines += ["   " + line if line else "" for line in body]
    return lines


def numbered(names):
    """Groups for itertools.groupby: a name without a docstring joins the overload before it, or the field on its line."""
    numbers, last = {}, None
    for number, name in enumerate(names):
        joins = last is not None and (
            name.beside is last or name.kind == "function" == last.kind and name.name == last.name and not name.docstring)
        numbers[id(name)] = numbers[id(last)] if joins else number
        last = name
    return lambda name: (directive_kind(name), numbers[id(name)])


def directive_kind(name):
    return "enum-class" if name.kind == "enum" and name.node.get("strong") == "yes" else name.kind


def text(node, tag):
    found = node.find(tag)
    return "" if found is None else " ".join("".join(found.itertext()).split())


def template(node):
    found = node.find("templateparamlist")
    if found is None:
        return ""
    parameters = []
    for parameter in found:
        default = text(parameter, "defval")
        parameters.append(" ".join(filter(None, [text(parameter, "type"), text(parameter, "declname"), default and "= " + default])))
    return f"template <{', '.join(parameters)}> "


def signature(name):
    node = name.node
    if name.kind == "concept":
        return template(node) + name.name
    if name.kind in ("struct", "class"):
        bases = ", ".join("".join(base.itertext()) for base in node.findall("basecompoundref"))
        return template(node) + name.name + (f" : {bases}" if bases else "")
    if name.kind in ("enum", "enumvalue"):
        return name.name
    kind = re.sub(r"\b(inline|static|constexpr|friend) ", "", text(node, "type") + " ")
    if name.kind == "typedef":
        return template(node) + f"{name.name} = {kind}"
    arguments = re.sub(r"=(?=\S)", " = ", text(node, "argsstring"))
    initializer = text(node, "initializer")
    short = initializer if name.kind == "variable" and len(initializer) < 40 else ""
    return template(node) + ("static " if node.get("static") == "yes" else "") + f"{kind}{name.name}{arguments} {short}".strip()


def paragraph_lines(paragraph):
    """A paragraph of a docstring; code blocks in it are kept as they are."""
    lines, inline = [], escaped(paragraph.text)
    for child in paragraph:
        if child.tag == "verbatim":
            lines += [inline.strip(), "", *code_block(child.text), ""]
            inline = ""
        elif child.tag == "itemizedlist":
            lines += [inline.strip(), "", *(f"- {inlined(item)}" for item in child), ""]
            inline = ""
        else:
            begins = not inline.strip() or inline.rstrip().endswith(".")  # a sentence, where Needs is no class
            inline += escaped(child.text) if begins and child.tag == "ref" else inlined_child(child)
        inline += escaped(child.tail)
    return [*lines, inline.strip(), ""]


def code_block(code):
    return [".. code-block:: cpp", "   :force:", "", *("   " + line if line.strip() else "" for line in code.strip("\n").splitlines())]


def inlined(node):
    return escaped(node.text) + "".join(inlined_child(child) + escaped(child.tail) for child in node)


def inlined_child(child):
    if child.tag == "computeroutput":
        code = "".join(child.itertext()).strip()
        return f"\\ ``{code}``\\ "
    if child.tag == "ref":
        name = "".join(child.itertext())
        return f"\\ ``{name}``\\ " if name.endswith(".h") else f"\\ :cpp:any:`{name.removesuffix('()')}`\\ "
    if child.tag == "ulink":
        return f"\\ `{escaped(child.text)} <{child.get('url')}>`__\\ "
    return inlined(child)


def escaped(string):
    return re.sub(r"([\\*`|_])", r"\\\1", (string or "").replace("\n", " "))


def setup(app):
    headers = {}

    def fill(app, page_name, source):
        folder, _, which = page_name.rpartition("/")
        if folder == "reference" and which in PAGES:
            headers.update(headers or public_names.read_headers(pathlib.Path(app.doctreedir).parent / "doxygen"))
            source[0] += page(which, headers)

    app.connect("source-read", fill)
    return {"parallel_read_safe": False}
