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


EXCEPTION = r"\b(?:\w*Error|UnreadableFile|std::bad_alloc)\b"


def documented_errors(headers, root=ROOT):
    """{path: the exceptions that its docstrings name}: in sentences, from `throws` on, and those of f where one says `throws as f` or `otherwise like
    f`. A comment `// All throw ..` holds for the declarations up to the next blank line but its own."""
    names = [name for of_header in headers.values() for name in walk(of_header)]
    known, shared = {name.path for name in names}, {header: shared_comments(root / header) for header in headers}
    errors, others = collections.defaultdict(set), collections.defaultdict(set)
    for name in names:
        text = " ".join("".join(paragraph.itertext()) for paragraph in name.docstring) + " " + shared[name.line[0]].get(name.line[1], "")
        text = re.sub(r"\s+", " ", text)
        for sentence in re.findall(r"\b[Tt]hrows?\b.*?(?:\.(?= [A-Z])|$)", text):
            errors[name.path] |= set(re.findall(EXCEPTION, sentence))
        for other in re.findall(r"(?:[Tt]hrows? as|[Oo]therwise like) (\w[\w:]*)", text):
            scopes = [name.scope.rsplit("::", up)[0] for up in range(name.scope.count("::") + 1)]
            found = [f"{scope}::{other}" for scope in scopes if f"{scope}::{other}" in known]
            assert found, f"{name.path} throws as {other}, which is no public name"
            others[name.path].add(found[0])

    def with_others(path):
        return errors[path].union(*map(with_others, others[path]))

    return {path: found for path in known if (found := with_others(path))}


def shared_comments(header):
    """{line: comment} for the lines below a comment that says what all throw."""
    text, comments = header.read_text(), {}
    for match in re.finditer(r"((?:^ *// .*\n)+)\n?((?:.+\n)+)", text, re.MULTILINE):
        first = text.count("\n", 0, match.start(2)) + 1
        if "All throw" in match[1]:
            comments |= {first + line: re.sub(r"\s*// ", " ", match[1]) for line in range(match[2].count("\n"))}
    return comments


def undocumented_errors(headers, root=ROOT):
    """`path: exception` for what a function throws, itself or by a public function called check_.., and what is in the docstrings neither of the
    function nor of its type."""
    documented = documented_errors(headers, root)
    checks = {path.rpartition("::")[2]: errors for path, errors in documented.items() if "::check_" in path}
    found = set()
    for path, body in bodies(headers, root):
        thrown = {error for pair in re.findall(r"\bcheck<(\w{2,})>\(|\bthrow (\w{2,})", body) for error in pair if error}
        thrown |= {error for call in re.findall(r"\b(check_\w+)\(", body) for error in checks.get(call, ())}
        said = documented.get(path, set()) | documented.get(path.rpartition("::")[0], set())
        found |= {f"{path}: {error}" for error in thrown - said}
    return sorted(found)


def bodies(headers, root=ROOT):
    """(path, text) of the definitions of public functions: those in headers by Doxygen's lines, those in sources by their layout, from column 0 to
    the brace there. Sources of absent libraries do not count: theirs throw MissingLibrary alone."""
    functions = [name for of_header in headers.values() for name in walk(of_header) if name.kind == "function"]
    for name in functions:
        location = name.node.find("location")
        if begin := int(location.get("bodystart", 0)):
            lines = (root / name.line[0]).read_text().splitlines()
            yield name.path, "\n".join(lines[begin - 1:max(begin, int(location.get("bodyend")))])
    public = {name.path for name in functions}
    for layer in sorted({header.split("/")[0] for header in headers}):
        for source in sorted((root / layer).rglob("*.cpp")):
            if "without" not in source.parts:
                yield from ((path, text) for path, text in definitions(source.read_text()) if path in public)


def definitions(source):
    """(path, text) of the functions of a source, but for those in unnamed namespaces and in detail."""
    flags = re.MULTILINE | re.DOTALL
    source = re.sub(r"^namespace (?:detail )?\{\n.*?^\}  // namespace", "", source, flags=flags)
    declaration, one_line, function = r"[^{}]*?;$", r"[^{}]*?\{[^\n]*\}(?: *//[^\n]*)?$", r".*?(?:^\}|\{\}$)"
    scopes = re.split(r"^namespace (braid[\w:]*) \{$", source, flags=flags)
    for scope, body in zip(scopes[1::2], scopes[2::2]):
        for text in re.findall(rf"^(?!namespace)\w(?:{declaration}|{one_line}|{function})", body, flags):
            if name := re.match(r"[^(]*?((?:\w+(?:<\w+>)?::)*(?:operator(?:\(\)|[^(]+)|\w+))\(", text):
                yield f"{scope}::{re.sub('<.*?>', '', name[1])}", text
