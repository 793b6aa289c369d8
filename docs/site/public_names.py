"""The public names of the library and their docstrings, as Doxygen finds them in the headers."""

import collections
import dataclasses
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Name:
    """A declaration: a type, a function, a field, an enumerator, .. with its members."""
    node: ElementTree.Element
    kind: str  # Doxygen's word: class, struct, concept, function, variable, typedef, enum, enumvalue
    scope: str  # braid::nn
    name: str
    line: tuple  # (file, line)
    members: list = dataclasses.field(default_factory=list)
    beside: "Name" = None  # what is declared before it on the same line, and after: `Linear q, k;  ///< for both`
    after: "Name" = None

    @property
    def path(self):
        return f"{self.scope}::{self.name}"

    @property
    def docstring(self):
        """The paragraphs of its description, or of that of a name on the same line: Doxygen attaches it to one of them."""
        on_the_line = (self, *chain(self, "beside"), *chain(self, "after"))
        return next((name.own_docstring for name in on_the_line if name.own_docstring), [])

    @property
    def own_docstring(self):
        return [paragraph for part in ("briefdescription", "detaileddescription") for paragraph in self.node.find(part) or ()
                if "".join(paragraph.itertext()).strip()]


def chain(name, link):
    while name := getattr(name, link):
        yield name


def read_headers(folder, root=ROOT):
    """Runs Doxygen on the headers below `root` and writes XML into `folder`. Raises CalledProcessError for a docstring that it cannot parse."""
    settings = (ROOT / "docs/site/Doxyfile").read_text() + f"\nOUTPUT_DIRECTORY = {folder}\n"
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=root, check=True)
    return public_names(pathlib.Path(folder) / "xml")


def public_names(xml):
    """{header: [Name, ..]} in the order of the lines; types have their public members, and the protected ones, for classes that derive from them."""
    compounds = [node for path in xml.glob("*.xml") for node in ElementTree.parse(path).getroot().iter("compounddef")]
    types, found = {}, []
    for node in compounds:
        if node.get("kind") in ("class", "struct", "concept") and node.get("prot") != "private":
            scope, _, name = node.findtext("compoundname").rpartition("::")
            types[f"{scope}::{name}"] = Name(node, node.get("kind"), scope, name, line_of(node))
    for node in compounds:
        if node.get("kind") not in ("class", "struct", "namespace"):
            continue
        scope = node.findtext("compoundname")
        if node.get("kind") != "namespace" and scope not in types:
            continue
        for member in node.iter("memberdef"):
            if member.get("prot") != "private" and member.get("kind") != "friend":
                found.append(Name(member, member.get("kind"), scope, member.findtext("name"), line_of(member)))
                found[-1].members = [Name(value, "enumvalue", found[-1].path, value.findtext("name"), found[-1].line)
                                     for value in member.iter("enumvalue")]
    headers = collections.defaultdict(list)
    for name in sorted([*types.values(), *found], key=lambda name: name.line):
        place = types[name.scope].members if name.scope in types else headers[name.line[0]]
        if place and (place[-1].kind, place[-1].line) == (name.kind, name.line):
            name.beside, place[-1].after = place[-1], name
        place.append(name)
    return dict(sorted(headers.items()))


def line_of(node):
    location = node.find("location")
    return location.get("file"), int(location.get("line"))


def walk(names):
    for name in names:
        yield name
        yield from walk(name.members)


def is_one_line(name):
    location = name.node.find("location")
    return location.get("bodystart") == location.get("bodyend")


def is_convention(name):
    """Names that the manual documents once for all: constructors, assignments, the common members of modules and connections (a call, which
    the description of the module covers), and fields that have the name of their type, such as `MixingSettings mixing_settings`."""
    last = name.scope.rpartition("::")[2]
    if name.name in (last, "~" + last, "operator=", "operator()", "params", "Stream", "open", "close"):
        return True
    if name.kind != "variable":
        return False
    of_type = "".join(name.node.find("type").itertext()).rpartition("::")[2]
    return re.sub(r"\W", "", of_type).lower().endswith(name.name.replace("_", "").lower())


def undescribed(headers):
    """Names without a docstring. One documented overload suffices for all in its scope, and one documented enumeration on a line for its enumerators."""
    described = collections.defaultdict(bool)
    lines = {}
    for name in walk(name for names in headers.values() for name in names):
        described[name.path] |= bool(name.docstring) or is_convention(name)
        if name.kind == "enum" and described[name.path] and is_one_line(name):
            described |= {value.path: True for value in name.members}
        lines.setdefault(name.path, "{}:{}".format(*name.line))
    return [f"{lines[path]}: {path}" for path, there in described.items() if not there]
