"""Finds where a slip could be planted in C++ sources, by their syntax tree, and plants many of them at once.

A mutant is a range of a file and the text that a slip would leave there. Planted, it stands behind a switch:
`a < b` becomes `(braid_mutant(7) ? a <= b : a < b)`, so that one build carries all mutants and each costs a run of the tests.
"""
import dataclasses
import re

from clang import cindex
from clang.cindex import CursorKind as Kind

# What stands for what: operators, and functions, of Highway's among them, whose names a writer confuses.
OPERATORS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<", "&": "|", "|": "&",
}  # fmt: skip
ASSIGNMENTS = {"+=": ("=", "-="), "-=": ("+=",), "*=": ("=", "/="), "/=": ("*=",)}
FUNCTIONS = {"min": "max", "max": "min", "Min": "Max", "Max": "Min", "Add": "Sub", "Sub": "Add", "MulAdd": "NegMulAdd",
             "Lt": "Le", "Le": "Lt", "Gt": "Ge", "Ge": "Gt", "floor": "ceil", "sin": "cos", "cos": "sin"}  # fmt: skip
SYMMETRIC = {"min", "max", "Min", "Max", "Add", "Mul", "And", "Or", "Xor", "swap", "minmax"}
FACTORS_FIRST = {"MulAdd", "NegMulAdd", "MulSub", "NegMulSub"}  # which may exchange their first two arguments
HINT = re.compile(rb"(\w+::)*[pP]refetch\(")  # changes no value
CONSTANT = {Kind.STATIC_ASSERT, Kind.ENUM_DECL, Kind.TEMPLATE_NON_TYPE_PARAMETER, Kind.TEMPLATE_TYPE_PARAMETER,
            Kind.CXX_UNARY_EXPR, Kind.TYPE_ALIAS_DECL, Kind.TYPE_ALIAS_TEMPLATE_DECL}  # fmt: skip
FUNCTION_LIKE = {Kind.FUNCTION_DECL, Kind.CXX_METHOD, Kind.FUNCTION_TEMPLATE, Kind.CONSTRUCTOR, Kind.CONVERSION_FUNCTION,
                 Kind.VAR_DECL, Kind.FIELD_DECL}  # fmt: skip
WRAPPERS = {Kind.UNEXPOSED_EXPR, Kind.PAREN_EXPR}
STATEMENTS = {Kind.CALL_EXPR, Kind.BINARY_OPERATOR, Kind.COMPOUND_ASSIGNMENT_OPERATOR, Kind.UNARY_OPERATOR, Kind.BREAK_STMT,
              Kind.CONTINUE_STMT}  # fmt: skip
SETTINGS = re.compile(r"(Settings|Config|Options)$")


@dataclasses.dataclass(frozen=True, order=True)
class Mutant:
    """The bytes [begin, end) of a file, and what a slip leaves of them. As a whole statement or condition it needs another switch."""

    path: str
    begin: int
    end: int
    text: str
    kind: str
    form: str = "expression"  # or "condition", "object", "statement"


class Finder:
    """Collects the mutants of one file."""

    def __init__(self, root, path, flags):
        self.path = path
        self.source = (root / path).read_bytes()
        self.mutants = set()
        self.constant = 0  # sites in what the compiler evaluates
        unit = cindex.Index.create().parse(str(root / path), args=flags)
        self.name = str(root / path)
        for cursor in known(unit.cursor):
            if str(cursor.location.file) == self.name:
                self.visit(cursor, None)

    def text(self, cursor):
        return self.source[cursor.extent.start.offset : cursor.extent.end.offset].decode()

    def between(self, first, second):
        """The operator between two operands."""
        gap = self.source[first.extent.end.offset : second.extent.start.offset].decode()
        return re.sub(r"//.*|/\*.*?\*/|\s", "", gap)

    def add(self, begin, end, text, kind, form="expression"):
        raw = self.source[begin:end].decode()
        if "\n" in raw + text:
            if "//" in raw or "#" in raw:
                return
            text = re.sub(r"\s*\n\s*", " ", text)
        if text != raw:
            self.mutants.add(Mutant(self.path, begin, end, text, kind, form))

    def replace(self, cursor, text, kind, form="expression"):
        self.add(cursor.extent.start.offset, cursor.extent.end.offset, text, kind, form)

    def visit(self, cursor, parent):
        kind = cursor.kind
        if kind in CONSTANT or (kind in FUNCTION_LIKE and self.is_constexpr(cursor)):
            self.constant += 1
            return
        if kind == Kind.CALL_EXPR and HINT.match(self.source, cursor.extent.start.offset):
            return
        children = known(cursor)
        if kind == Kind.CASE_STMT or self.source.startswith(b"if constexpr", cursor.extent.start.offset):
            self.constant += 1
            children = children[1:]
        if str(cursor.extent.start.file) == self.name and cursor.extent.end.offset > cursor.extent.start.offset:
            handler = getattr(self, kind.name.lower(), None)
            if handler:
                handler(cursor, children, parent)
        for child in children:
            self.visit(child, cursor)

    def is_constexpr(self, cursor):
        body = next((child for child in known(cursor) if child.kind == Kind.COMPOUND_STMT), None)
        end = body.extent.start.offset if body else cursor.location.offset
        return re.search(rb"\b(constexpr|consteval|constinit)\b", self.source[cursor.extent.start.offset : end]) is not None

    def binary_operator(self, cursor, children, parent):
        if len(children) != 2:
            return
        left, right = children
        operator = self.between(left, right)
        if operator not in OPERATORS or (operator in "+-" and "POINTER" in left.type.kind.name + right.type.kind.name):
            return
        kind = "comparison" if operator in ("<", "<=", ">", ">=", "==", "!=") else "logic" if operator in ("&&", "||") else "arithmetic"
        self.replace(cursor, f"{self.text(left)} {OPERATORS[operator]} {self.text(right)}", kind)

    def compound_assignment_operator(self, cursor, children, parent):
        left, right = children
        for other in ASSIGNMENTS.get(self.between(left, right), ()):
            self.replace(cursor, f"{self.text(left)} {other} {self.text(right)}", "assignment")

    def unary_operator(self, cursor, children, parent):
        text = self.text(cursor)
        if text.startswith("-") and not text.startswith("--"):
            self.replace(cursor, text[1:], "sign")
        elif text.startswith("!"):
            self.replace(cursor, f"static_cast<bool>({text[1:]})", "logic")

    def integer_literal(self, cursor, children, parent):
        text = self.text(cursor)
        if re.fullmatch(r"[0-9a-fA-FxX']+[uUlL]*", text):
            self.replace(cursor, f"{text} + 1", "constant")

    def floating_literal(self, cursor, children, parent):
        text = self.text(cursor)
        if re.fullmatch(r"[0-9.eE+-]+[fF]?", text):
            self.replace(cursor, f"{text} + 1", "constant")

    def cxx_bool_literal_expr(self, cursor, children, parent):
        text = self.text(cursor)
        if text in ("true", "false"):
            self.replace(cursor, "true" if text == "false" else "false", "constant")

    def if_stmt(self, cursor, children, parent):
        if not re.match(r"if\s*\(", self.text(cursor)):
            return
        if children[0].kind not in (Kind.VAR_DECL, Kind.DECL_STMT):
            self.replace(children[0], f"!({self.text(children[0])})", "negation", "condition")
            self.replace(children[0], "false", "check left out", "condition")
        for branch in children[1:]:
            self.statement(branch)

    def while_stmt(self, cursor, children, parent):
        self.statement(children[-1])

    for_stmt = cxx_for_range_stmt = while_stmt

    def conditional_operator(self, cursor, children, parent):
        self.replace(children[0], f"!({self.text(children[0])})", "negation", "condition")

    def compound_stmt(self, cursor, children, parent):
        for child in children:
            self.statement(child)

    def statement(self, cursor):
        """An expression that is a statement, left out."""
        inner = cursor
        while inner.kind in WRAPPERS and (children := known(inner)):
            inner = children[0]
        if inner.kind not in STATEMENTS or cursor.kind == Kind.COMPOUND_STMT or HINT.match(self.source, cursor.extent.start.offset):
            return
        end = cursor.extent.end.offset
        if rest := re.match(rb"\s*;", self.source[end:]):
            self.add(cursor.extent.start.offset, end + rest.end(), "{}", "statement left out", "statement")

    def call_expr(self, cursor, children, parent):
        arguments = [argument for argument in cursor.get_arguments() if argument is not None]
        begin = cursor.extent.start.offset
        if not arguments or self.source[cursor.extent.end.offset - 1 : cursor.extent.end.offset] != b")":
            return
        if parent is not None and parent.kind in (Kind.VAR_DECL, Kind.FIELD_DECL) and begin == parent.location.offset:
            return  # `Type name(a, b)` is no expression
        if not all(begin <= argument.extent.start.offset < argument.extent.end.offset for argument in arguments):
            return  # one is a default
        head = self.source[begin : arguments[0].extent.start.offset].decode()
        name = re.search(r"(\w+)\s*(<[^()]*>)?\s*\(\s*$", head)
        if not name:
            return
        whole = self.text(cursor)
        if other := FUNCTIONS.get(name[1]):
            self.replace(cursor, whole[: name.start(1)] + other + whole[name.end(1) :], "function")
        if name[1] in SYMMETRIC:
            return
        for first, second in list(zip(arguments, arguments[1:]))[name[1] in FACTORS_FIRST :]:
            if type_of(first) == type_of(second) and type_of(first):
                a, b = self.text(first), self.text(second)
                middle = self.source[first.extent.end.offset : second.extent.start.offset].decode()
                before = self.source[begin : first.extent.start.offset].decode()
                after = self.source[second.extent.end.offset : cursor.extent.end.offset].decode()
                self.replace(cursor, before + b + middle + a + after, "arguments exchanged")

    def member_ref_expr(self, cursor, children, parent):
        field = cursor.referenced
        if not children or field is None or field.kind != Kind.FIELD_DECL or not SETTINGS.search(field.semantic_parent.spelling):
            return
        if parent is not None and parent.kind == Kind.BINARY_OPERATOR and known(parent)[0] == cursor:
            return  # what is assigned to, or compared; the latter is another mutant
        base = self.text(children[0])
        self.replace(cursor, f"std::remove_cvref_t<decltype({base})>{{}}.{field.spelling}", "setting replaced by its default", "object")


def known(cursor):
    """Its children, but for those of kinds newer than these bindings."""
    def is_known(child):
        try:
            return child.kind is not None
        except ValueError:
            return False

    return [child for child in cursor.get_children() if is_known(child)]


def type_of(argument):
    kind = argument.type.get_canonical()
    pointee = kind.get_pointee()
    spelling = (pointee if pointee.spelling and "&" in kind.spelling else kind).spelling
    return "" if "dependent" in spelling else spelling.replace("const ", "")


def plant(source, numbered):
    """The text of a file with all of `numbered`, [(number, mutant)], behind switches."""

    def body(begin, end, inside):
        """[begin, end) with what stands inside; of mutants that overlap without nesting, later ones are not planted."""
        out, at = b"", begin
        while inside:
            (number, mutant), rest = inside[0], inside[1:]
            nested = [other for other in rest if other[1].end <= mutant.end]
            out += source[at : mutant.begin] + switch(number, mutant, body(mutant.begin, mutant.end, nested))
            at = mutant.end
            inside = [other for other in rest if other[1].begin >= mutant.end]
        return out + source[at:end]

    return body(0, len(source), sorted(numbered, key=lambda pair: (pair[1].begin, -pair[1].end, pair[1].form != "statement", pair[0])))


def switch(number, mutant, original):
    on = f"braid_mutant({number})".encode()
    if mutant.form == "statement":
        return b"if (" + on + b") {} else " + original
    if mutant.form == "object":  # references to it last
        return b"(*(" + on + b" ? &braid_kept(" + mutant.text.encode() + b") : &(" + original + b")))"
    if mutant.form == "condition":
        original = b"static_cast<bool>(" + original + b")"
    return b"(" + on + b" ? " + mutant.text.encode() + b" : " + original + b")"
