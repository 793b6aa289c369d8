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
    """Names that the manual documents once for all: copies and moves, defaulted members, destructors, `params` and `Stream`, and fields that have
    the name of their type, such as `MixingSettings mixing_settings`."""
    last, arguments = name.scope.rpartition("::")[2], text_of(name.node, "argsstring")
    if name.name in ("~" + last, "operator=", "params", "Stream") or re.search(r"= ?(default|delete)$", arguments):
        return True
    if name.name == last:
        return bool(re.match(rf"\((const )?{last} ?&&?\w*\)", arguments))
    if name.kind != "variable":
        return False
    of_type = text_of(name.node, "type").rpartition("::")[2]
    return re.sub(r"\W", "", of_type).lower().endswith(name.name.replace("_", "").lower())


def text_of(node, tag):
    found = node.find(tag)
    return "" if found is None else "".join(found.itertext())


def undescribed(headers):
    """Names without a docstring. One documented overload suffices for all in its scope, and one documented enumeration on a line for its enumerators."""
    described = collections.defaultdict(bool)
    lines = {}
    for name in walk(name for names in headers.values() for name in names):
        if is_convention(name):
            continue
        described[name.path] |= bool(name.docstring)
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
            found = referred_to(other, name.path, known)
            assert found, f"{name.path} throws as {other}, which is no public name"
            others[name.path].add(found)

    def with_others(path):
        return errors[path].union(*map(with_others, others[path]))

    return {path: found for path in known if (found := with_others(path))}


def referred_to(other, path, known):
    """The path of `other` in the docstring of `path`, which means the nearest of that name but itself; None if there is none."""
    scopes = [path.rsplit("::", up)[0] for up in range(1, path.count("::") + 1)]
    return next((found for scope in scopes if (found := f"{scope}::{other}") in known and found != path), None)


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


TENSORS = re.compile(r"(?=.*\b(?:Tensor|Var)\b)(?:\b(?:const|std::(?:vector|span|optional)|List|Tensor|Var)\b|[<>&\s]|\*(?=.*>))+")  # or lists
SHAPE = r"(?<![\w\])])(?<!\bin )(?<!\bof )\[[^][]*\]"  # [B, T, C], but neither x[i] nor an interval
WORDS = (r"\b[Ee]lement by element|\b(?:each|pair of) elements?\b|\b[Bb]roadcast|numpy's rule|'s shape|\b[Ss]haped like|\b[Kk]eeps? the shape"
         r"|\b(?:any|one|same|another|its|their|that|whatever) shapes?\b|\bshapes?(?: and dtypes?)? of\b|\b(?:each|two) ax[ei]s\b")
WORDS_FOR_RESULTS = r"-> reduced\b|\bscalar\b|\brank 0\b"


def shapeless(headers):
    """`file:line: path: tensor` for each tensor that a public function takes or returns or a type has as a field, if docstrings do not say its shape:
    in brackets after its name, `x [B, T, C]`, for results anywhere else, or in WORDS for all of a function. What becomes of axes counts if an argument
    names them, and an argument `shape` is that of the result. The docstrings of overloads count too, those of functions that one refers to and, for
    arguments and the result of a call, that of the type."""
    names = [name for of_header in headers.values() for name in walk(of_header)]
    texts, found = docstrings(names), []
    for name in names:
        if name.kind not in ("function", "variable") or is_convention(name) or name.node.find("reimplements") is not None:
            continue
        parameters = {text_of(parameter, "declname"): text_of(parameter, "type") for parameter in name.node.findall("param")}
        said = with_others(name.path, texts)
        words = WORDS + r"|\bax[ei]s\b" * (len(said) > 1 or any(parameter.startswith("ax") for parameter in parameters))
        of_type = texts[name.kind == "function" and name.scope]
        if any(re.search(words, without_errors(text)) for text in [*said, of_type]):
            continue
        shapes = {tensor: (rf"\b{tensor}\b[^][.;()>]{{0,40}}" if tensor else "") + SHAPE
                  for tensor, kind in parameters.items() if TENSORS.fullmatch(kind)}
        found += [(name, tensor) for tensor, shape in shapes.items() if not re.search(shape, " ".join([*said, of_type]), re.IGNORECASE)]
        if TENSORS.fullmatch(text_of(name.node, "type")) and "shape" not in parameters:
            said += [of_type] * (name.name == "operator()")
            others = re.sub("|".join(shapes.values()) or "$", "", " ".join(said), flags=re.IGNORECASE)
            found += [(name, "result" if name.kind == "function" else "field")] * (not re.search(f"{SHAPE}|{WORDS_FOR_RESULTS}", others))
    return ["{}:{}: {}: {}".format(*name.line, name.path, tensor) for name, tensor in found]


def dtypeless(headers, root=ROOT):
    """`file:line: path: dtype` for i32 and f32 in the body of a public function that returns tensors, if docstrings do not name them: it makes results of them,
    as `widened` does of f32. f64 and bf16 are for what is between."""
    names = [name for of_header in headers.values() for name in walk(of_header)]
    texts, found = docstrings(names), set()
    makers = {name.path: "{}:{}".format(*name.line) for name in names
              if name.kind == "function" and re.search(r"\b(\w*Tensors?|Var|\w*Streams)\b", text_of(name.node, "type"))}
    for path, body in bodies(headers, root):
        body = re.split(r"\)[\w ]* \{", body, maxsplit=1)[-1]  # without default arguments
        dtypes = re.findall(r"DType::([if]32)", body) + ["f32"] * ("widened(" in body)
        said = " ".join(with_others(path, texts)) + texts[path.rpartition("::")[0]]
        found |= {f"{makers[path]}: {path}: {dtype}" for dtype in dtypes if path in makers and dtype not in said}
    return sorted(found)


def docstrings(names):
    """{path: the docstrings of its names in a line, without blocks of code}"""
    def prose(node):
        return "" if node.tag == "verbatim" else (node.text or "") + "".join(prose(child) + (child.tail or "") for child in node)
    texts = collections.defaultdict(str)
    for name in names:
        texts[name.path] = " ".join([*texts[name.path].split(), *" ".join(map(prose, name.docstring)).split()])
    return texts


def with_others(path, texts):
    """The docstring of `path` and those of functions that it refers to, if it is `f(x)`, `x becomes f(x)` or the like, or ends `otherwise like f`."""
    other = re.fullmatch(r"(?:.*(?:\bis |becomes |Writes |otherwise like ))?(?:x\.)?(\w+)(?:\(.*\))?\W*", without_errors(texts[path]))
    found = other and referred_to(other[1], path, texts)
    return [texts[path], *(with_others(found, texts) if found else ())]


def without_errors(text):
    return re.sub(r"\b[Tt]hrows?\b.*?(?:\.(?= [A-Z])|$)", "", text).strip()
