"""Reads a Python function and returns its text in the forms that the generator inlines.

An aggregate's functions are ordinary Python. A kernel needs them as text that stands on its own: constants folded in, helper
functions brought along, ``None`` results split off, and, for vector registers, every choice between two values written as
``where(condition, a, b)``, so that all lanes take the same path.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import os
import textwrap
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sash.algebra import PRIMITIVES
from sash.errors import UncompilableFunction

MODULES = {"math", "numpy"}
PARSING = threading.Lock()
"""Python 3.11 counts the depth of trees for all threads together, so two must not be parsed at once."""
LANE_CALLS = {"abs", "min", "max", "float", "bool"}
LANE_MATH = {"sqrt", "fabs", "floor", "ceil"}


@dataclass(frozen=True)
class Source:
    """A function's definition as a syntax tree that mentions nothing outside but builtins, modules and helpers."""

    definition: ast.FunctionDef
    helpers: tuple[Source, ...] = ()
    modules: tuple[tuple[str, str], ...] = ()
    origin: str = ""

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def text(self) -> str:
        return ast.unparse(self.definition)

    @property
    def is_plain(self) -> bool:
        """Whether it only returns its arguments and constants, or arithmetic of them on whole numbers that cannot fail."""
        body = [node for node in self.definition.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
        if len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
            return False
        return all(isinstance(node, _PLAIN) for node in ast.walk(body[0].value))

    def all_helpers(self) -> Iterator[Source]:
        for helper in self.helpers:
            yield from helper.all_helpers()
            yield helper


_PLAIN = (ast.Tuple, ast.Name, ast.Constant, ast.Load, ast.BinOp, ast.Add, ast.Sub, ast.RShift, ast.BitAnd, ast.UnaryOp, ast.USub)


class NotBranchFree(Exception):
    """Why a function has no branch-free form."""


def read(
    function: Callable[..., Any],
    name: str,
    constants: dict[str, Any] | None = None,
    words: frozenset[str] | None = None,
) -> Source:
    """The source of ``function`` as a definition called ``name``.

    ``constants`` overrides outside names. ``words`` are names that the generated module defines, and stay as they
    are; with ``words``, ``function`` is an algorithm's, and its helpers keep their names too.
    """
    origin = f"{getattr(function, '__qualname__', name)}"
    code = getattr(function, "__code__", None)
    if code is not None:
        origin = f"{origin.rpartition('<locals>.')[2]} ({os.path.basename(code.co_filename)}, line {code.co_firstlineno})"
    else:
        raise UncompilableFunction(f"{origin} is not a Python function: write it as `def {name}(...): ...`")
    if function.__name__ == "<lambda>":
        raise UncompilableFunction(f"{origin} must be defined with `def`, not as a lambda")
    try:
        text = textwrap.dedent(inspect.getsource(function))
        with PARSING:
            tree = ast.parse(text)
    except (OSError, SyntaxError) as error:
        raise UncompilableFunction(
            f"the source of {origin} cannot be read ({error}); define it in a file or a notebook cell, with `def`"
        ) from error
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise UncompilableFunction(f"{origin} must be defined with `def`, not as a lambda")
    return _Reader(function, origin, constants or {}, words).source(definition, name)


class _Reader(ast.NodeTransformer):
    """Folds outside names into a definition."""

    def __init__(self, function: Callable[..., Any], origin: str, constants: dict[str, Any], words: frozenset[str] | None) -> None:
        self.function, self.origin, self.constants, self.words = function, origin, constants, words
        self.first_line = function.__code__.co_firstlineno
        self.helpers: list[Source] = []
        self.modules: dict[str, str] = {}
        closure = inspect.getclosurevars(function)
        self.outside: dict[str, Any] = {**closure.globals, **closure.nonlocals}

    def source(self, definition: ast.FunctionDef, name: str) -> Source:
        if definition.args.vararg or definition.args.kwarg or definition.args.kwonlyargs:
            raise self.fail(definition, "only positional arguments can be compiled, no *args, **kwargs or keyword-only ones")
        parameters = [arg.arg for arg in (*definition.args.posonlyargs, *definition.args.args)]
        self.local = set(parameters)
        self.local |= {n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        folded = ast.FunctionDef(
            name=name,
            args=ast.arguments(
                posonlyargs=[],
                args=[ast.arg(arg=parameter) for parameter in parameters],
                kwonlyargs=[],
                kw_defaults=[],
                defaults=[self.visit(default) for default in definition.args.defaults],
            ),
            body=[self.visit(statement) for statement in _without_docstring(definition.body)],
            decorator_list=[],
        )
        ast.fix_missing_locations(folded)
        return Source(folded, tuple(self.helpers), tuple(self.modules.items()), self.origin)

    def fail(self, node: ast.AST, reason: str) -> UncompilableFunction:
        line = self.first_line + getattr(node, "lineno", 1) - 1
        return UncompilableFunction(f"{self.origin}, in line {line}: {reason}")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            raise self.fail(node, "a declaration without a value")
        return ast.Assign(targets=[node.target], value=self.visit(node.value))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.local:
            return node
        if self.words and node.id in self.words:
            return node
        if node.id in self.constants:
            return _constant(self.constants[node.id])
        if node.id in self.outside:
            value = self.outside[node.id]
            if isinstance(value, bool | int | float):
                return _constant(value)
            if isinstance(value, types.ModuleType):
                if value.__name__ not in MODULES:
                    raise self.fail(node, f"module {value.__name__} cannot be used here; math and numpy can")
                self.modules[node.id] = value.__name__
                return node
            if isinstance(value, types.FunctionType):
                if value is PRIMITIVES.get(value.__name__):
                    return ast.Name(id=value.__name__, ctx=ast.Load())
                helper_name = node.id if self.words else f"{self.function.__name__}_{node.id}"
                helper = read(value, helper_name, self.constants, self.words)
                if helper.name not in {known.name for known in self.helpers}:
                    self.helpers.append(helper)
                return ast.Name(id=helper.name, ctx=ast.Load())
            if getattr(value, "__module__", None) == "math":
                self.modules["math"] = "math"
                return ast.Attribute(value=ast.Name(id="math", ctx=ast.Load()), attr=value.__name__, ctx=ast.Load())
            raise self.fail(node, f"{node.id} is {type(value).__name__}; only numbers, functions, math and numpy can be used")
        if not hasattr(builtins, node.id):
            raise self.fail(node, f"{node.id} is not defined")
        return node


def _constant(value: float | int | bool) -> ast.expr:
    if isinstance(value, float) and not math.isfinite(value):
        text = "math.nan" if math.isnan(value) else "math.inf" if value > 0 else "-math.inf"
        return ast.parse(text, mode="eval").body
    return ast.Constant(value=value)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return body[1:] if is_doc else body


def may_return_none(source: Source) -> bool:
    """Whether the function may return None."""
    returns = (node for node in ast.walk(source.definition) if isinstance(node, ast.Return))
    return _falls_through(source.definition.body) or any(n.value is None or _mentions_none(n.value) for n in returns)


def _falls_through(body: list[ast.stmt]) -> bool:
    """Whether the end of a function can be reached without a ``return``."""
    last = body[-1]
    if isinstance(last, ast.If):
        return not last.orelse or _falls_through(last.body) or _falls_through(last.orelse)
    return not isinstance(last, ast.Return)


def _mentions_none(expression: ast.expr) -> bool:
    if isinstance(expression, ast.IfExp):
        return _mentions_none(expression.body) or _mentions_none(expression.orelse)
    return isinstance(expression, ast.Constant) and expression.value is None


def split_none(source: Source, value_name: str, defined_name: str) -> tuple[Source, Source]:
    """``lower`` as two functions: its value, and whether it has one.

    ``x / n if n > 1 else None`` becomes ``x / n`` and ``n > 1``.
    """
    try:
        whole = as_expression(source)
    except NotBranchFree as error:
        raise UncompilableFunction(f"{source.origin} may return None, so it may only use assignments, if and return: {error}") from error
    value = _value_of(whole)
    if value is None:
        raise UncompilableFunction(f"{source.origin} only returns None")
    return _with_body(source, value_name, value), _with_body(source, defined_name, _definedness_of(whole))


def _value_of(expression: ast.expr) -> ast.expr | None:
    if isinstance(expression, ast.IfExp):
        body, orelse = _value_of(expression.body), _value_of(expression.orelse)
        if body is None or orelse is None:
            return body or orelse
        return ast.IfExp(test=expression.test, body=body, orelse=orelse)
    return None if _mentions_none(expression) else expression


def _definedness_of(expression: ast.expr) -> ast.expr:
    if isinstance(expression, ast.IfExp):
        body, orelse = _definedness_of(expression.body), _definedness_of(expression.orelse)
        if isinstance(body, ast.Constant) and isinstance(orelse, ast.Constant):
            if body.value == orelse.value:
                return body
            return expression.test if body.value else ast.UnaryOp(op=ast.Not(), operand=expression.test)
        return ast.IfExp(test=expression.test, body=body, orelse=orelse)
    return ast.Constant(value=not _mentions_none(expression))


def _with_body(source: Source, name: str, expression: ast.expr) -> Source:
    definition = ast.FunctionDef(
        name=name,
        args=source.definition.args,
        body=[ast.Return(value=expression)],
        decorator_list=[],
    )
    ast.fix_missing_locations(definition)
    return Source(definition, source.helpers, source.modules, source.origin)


def as_expression(source: Source) -> ast.expr:
    """The function's result as one expression over its arguments."""
    return _run(source.definition.body, {})


def _run(statements: list[ast.stmt], known: dict[str, ast.expr]) -> ast.expr:
    for place, statement in enumerate(statements):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                known = {**known, name: _substitute(value, known)}
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                joined = ast.BinOp(left=ast.Name(id=name, ctx=ast.Load()), op=op, right=value)
                known = {**known, name: _substitute(joined, known)}
            case ast.If(test=test, body=body, orelse=orelse):
                rest = statements[place + 1 :]
                return ast.IfExp(test=_substitute(test, known), body=_run(body + rest, known), orelse=_run(orelse + rest, known))
            case ast.Return(value=None):
                return ast.Constant(value=None)
            case ast.Return(value=value) if value is not None:
                return _substitute(value, known)
            case _:
                raise NotBranchFree(f"it uses `{ast.unparse(statement).splitlines()[0]}`")
    return ast.Constant(value=None)


class _Substitution(ast.NodeTransformer):
    def __init__(self, known: dict[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.known.get(node.id, node)


def _substitute(expression: ast.expr, known: dict[str, ast.expr]) -> ast.expr:
    # NodeTransformer changes nodes in place, so work on a copy of the expression.
    copy = ast.parse(ast.unparse(expression), mode="eval").body
    result = _Substitution(known).visit(copy)
    assert isinstance(result, ast.expr)
    return result


def branch_free(source: Source, name: str) -> Source:
    """The function with ``where`` for every choice, so that it means the same for one value and for a register of values.

    Raises :class:`NotBranchFree` with the reason if there is no such form.
    """
    straight = all(isinstance(s, ast.Assign | ast.Return) for s in source.definition.body)
    rewrite = _BranchFree({helper.name for helper in source.helpers})
    if straight:
        definition = ast.parse(source.text).body[0]
        assert isinstance(definition, ast.FunctionDef)
        definition.name = name
        definition.body = [rewrite.visit(statement) for statement in definition.body]
        ast.fix_missing_locations(definition)
        result = Source(definition, (), source.modules, source.origin)
    else:
        result = _with_body(source, name, rewrite.visit(as_expression(source)))
    helpers = tuple(branch_free(helper, helper.name) for helper in source.helpers)
    return Source(result.definition, helpers, source.modules, source.origin)


class _BranchFree(ast.NodeTransformer):
    def __init__(self, helpers: set[str]) -> None:
        self.helpers = helpers

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return _call("where", self.visit(node.test), self.visit(node.body), self.visit(node.orelse))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """``a or b`` of truths is a truth; of numbers it is one of them, as in Python."""
        is_and = isinstance(node.op, ast.And)
        result: ast.expr = self.visit(node.values[-1])
        truths = _is_truth(node.values[-1])
        for value in reversed(node.values[:-1]):
            first: ast.expr = self.visit(value)
            truths = truths and _is_truth(value)
            if truths:
                result = _call("both" if is_and else "either", first, result)
            else:
                holds = ast.Compare(left=first, ops=[ast.NotEq()], comparators=[ast.Constant(value=0)])
                result = _call("where", holds, result, first) if is_and else _call("where", holds, first, result)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return _call("negate", self.visit(node.operand))
        self.generic_visit(node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        operands: list[ast.expr] = [self.visit(node.left), *(self.visit(c) for c in node.comparators)]
        pairs = [
            ast.Compare(left=left, ops=[op], comparators=[right])
            for left, op, right in zip(operands[:-1], node.ops, operands[1:], strict=True)
        ]
        if any(not isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq) for op in node.ops):
            raise NotBranchFree(f"it compares with `{ast.unparse(node)}`")
        result: ast.expr = pairs[0]
        for pair in pairs[1:]:
            result = _call("both", result, pair)
        return result

    def visit_Call(self, node: ast.Call) -> ast.expr:
        called = ast.unparse(node.func)
        arguments = [self.visit(argument) for argument in node.args]
        if called in self.helpers or called in PRIMITIVES:
            return ast.Call(func=node.func, args=arguments, keywords=[])
        if called in ("min", "max") and len(arguments) == 2:
            first, second = arguments
            op: ast.cmpop = ast.Lt() if called == "min" else ast.Gt()
            return _call("where", ast.Compare(left=second, ops=[op], comparators=[first]), second, first)
        if called in LANE_CALLS - {"min", "max"} and len(arguments) == 1:
            return _call(f"lane_{called}", *arguments)
        if called.startswith("math.") and called[5:] in LANE_MATH:
            return _call(f"lane_{called[5:]}", *arguments)
        raise NotBranchFree(f"it calls {called}, which has no vector form")

    def visit_For(self, node: ast.For) -> ast.stmt:
        raise NotBranchFree("it has a loop")

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, ast.Pow | ast.MatMult):
            raise NotBranchFree(f"it uses `{ast.unparse(node)}`")
        self.generic_visit(node)
        return node


def _is_truth(node: ast.expr) -> bool:
    """Whether an expression is a truth value whatever its operands are."""
    if isinstance(node, ast.BoolOp):
        return all(_is_truth(value) for value in node.values)
    return (
        isinstance(node, ast.Compare)
        or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
        or (isinstance(node, ast.Constant) and isinstance(node.value, bool))
    )


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=list(arguments), keywords=[])
