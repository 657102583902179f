"""Small faults for a program: every one a change of one place that a test should notice.

Libraries for this leave out functions with decorators, which here are half of the method (torch's
``no_grad``, properties), or know nothing of tensors, where a fault is a ``min`` for a ``max``.
"""

import ast
import builtins
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)

OTHER_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
"""Off by one, and the opposite."""
OTHER_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_PAIRS = (
    *(("min", "max"), ("minimum", "maximum"), ("amin", "amax"), ("argmin", "argmax")),
    *(("any", "all"), ("sum", "mean"), ("floor", "ceil"), ("zeros", "ones")),
    *(("zeros_like", "ones_like"), ("new_zeros", "new_ones"), ("train", "eval")),
    *(("repeat", "repeat_interleave"), ("log", "log1p")),
)
OTHER_NAMES = dict(_PAIRS) | {second: first for first, second in _PAIRS}
"""Functions that are easily taken for each other."""
TALKING = ("UserError", "ValueError", "TypeError", "warn")
"""Calls whose arguments are for people."""


@dataclass(frozen=True)
class Mutation:
    """One fault: where it is, what stood there, and what stands there now."""

    function: str
    """The function or method that it is in."""
    line: int
    text: str
    """Of the line, without its comment."""
    before: str
    after: str
    number: int
    """Among the faults of its file."""
    twin: int = 0
    """How many faults before it read the same."""

    def __str__(self) -> str:
        told = f"`{self.before}` → `{self.after}` in `{self.text}`"
        return f"{told} ({self.twin + 1})" if self.twin else told


def mutations(source: str) -> list[Mutation]:
    r"""All faults for a file.

    >>> for mutation in mutations("def half(x: int) -> float:\n    return x / 2"):
    ...     print(mutation)
    `x / 2` → `x * 2` in `return x / 2`
    `2` → `1` in `return x / 2`
    """
    lines = source.splitlines()
    found: list[Mutation] = []
    twins: Counter[tuple[str, str]] = Counter()
    for number, (place, other) in enumerate(_faults(ast.parse(source))):
        text = lines[place.line - 1].partition("  #")[0].strip()
        before, after = (place.label + _text(node) for node in (place.node, other))
        fault = Mutation(place.function, place.line, text, before, after, number)
        name = fault.function, str(fault)
        found.append(replace(fault, twin=twins[name]))
        twins[name] += 1
    return found


def mutated(source: str, number: int) -> str:
    r"""A file with one of its faults.

    >>> mutated("def half(x: int) -> float:\n    return x / 2", 1).splitlines()[-1]
    '    return x / 1'
    """
    tree = ast.parse(source)
    place, other = list(_faults(tree))[number]
    siblings = getattr(place.parent, place.field)
    if isinstance(siblings, list):
        siblings[place.index] = other
    else:
        setattr(place.parent, place.field, other)
    return ast.unparse(ast.fix_missing_locations(tree))


@dataclass(frozen=True)
class _Place:
    """A node of a syntax tree, and where it hangs."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int
    """In a list of siblings."""
    function: str
    line: int

    @property
    def label(self) -> str:
        """The name of an argument that is given by name."""
        return f"{self.parent.arg}=" if isinstance(self.parent, ast.keyword) else ""


def _faults(tree: ast.Module) -> Iterator[tuple[_Place, ast.AST]]:
    for place in _places(tree, "", 1):
        for other in _variants(place.node):
            yield place, other


def _places(parent: ast.AST, function: str, line: int) -> Iterator[_Place]:
    """All nodes whose change would change what the program does, in the order of the text."""
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for index, node in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(node, ast.AST) or _is_talk(node):
                continue
            here = getattr(node, "lineno", line)
            yield _Place(node, parent, field, index, function, here)
            if isinstance(node, ast.Raise) or _number(node) is not None:
                continue  # what it says; the digits of a negative number
            inner = function
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                inner = f"{function}.{node.name}".lstrip(".")
            yield from _places(node, inner, here)


def _is_talk(node: ast.AST) -> bool:
    """Docstrings, messages, and settings: constants with a name in capitals."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [name for each in targets for name in ast.walk(each) if isinstance(name, ast.Name)]
        return all(name.id.isupper() for name in names)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Call):
        return _called(node) in TALKING
    return isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom)


def _called(call: ast.Call) -> str:
    """The last name of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in place of a node by mistake."""
    match node:
        case ast.Compare(ops=[operator]):
            for other in OTHER_COMPARISONS[type(operator)]:
                yield _changed(node, ops=[other()])
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if (
            type(operator) in OTHER_OPERATORS
        ):
            yield _changed(node, op=OTHER_OPERATORS[type(operator)]())
        case ast.UnaryOp(operand=ast.Constant(value=int(value))):
            yield ast.Constant(1 - value)
        case ast.UnaryOp(op=ast.USub() | ast.Invert() | ast.Not(), operand=operand):
            yield operand
        case ast.BoolOp(op=operator):
            yield _changed(node, op=ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.Constant(value=value):
            yield from (ast.Constant(other) for other in _other_constants(value))
        case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(
            test, ast.Compare | ast.UnaryOp
        ):
            yield _changed(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Call(keywords=keywords):
            yield from _other_calls(node, keywords)
    if _can_go(node):
        yield ast.Pass()


def _number(node: ast.AST) -> object:
    """The value of a constant, negative ones included; None for anything else."""
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return inner.value if isinstance(inner, ast.Constant) else None


def _other_constants(value: object) -> Iterator[bool | int | float | str]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value - 1 if value else 1
    elif isinstance(value, float):
        yield 2 * value if value else 1.0
    elif isinstance(value, str):
        yield f"{value}?"


def _other_calls(call: ast.Call, keywords: list[ast.keyword]) -> Iterator[ast.Call]:
    """Another function, or one argument less."""
    other = OTHER_NAMES.get(_called(call), "")
    if other and isinstance(call.func, ast.Attribute):
        yield _changed(call, func=_changed(call.func, attr=other))
    elif hasattr(builtins, other):
        yield _changed(call, func=ast.Name(other))
    for dropped in keywords:
        if dropped.arg is not None and _number(dropped.value) is None:
            yield _changed(call, keywords=[each for each in keywords if each is not dropped])


def _can_go(node: ast.AST) -> bool:
    """Statements without which a program still runs."""
    if isinstance(node, ast.Assign):
        return all(isinstance(each, ast.Attribute | ast.Subscript) for each in node.targets)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Return):
        return node.value is None
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Break | ast.Continue | ast.Delete)


def _changed(node: Node, **fields: object) -> Node:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _text(node: ast.AST) -> str:
    """A node in one line; of a block, its head."""
    return ast.unparse(ast.fix_missing_locations(node)).splitlines()[0]
