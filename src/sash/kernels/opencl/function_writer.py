"""Writes the statements and expressions of one function in C."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sash.errors import UncompilableFunction
from sash.kernels.opencl.c_functions import CONSTANTS, is_columns, literal, type_of_parts
from sash.kernels.opencl.c_operators import Untranslatable, Value
from sash.kernels.opencl.c_types import BOOL, INT, Bundle, Pointer, Scalar, Struct, Vector, joined

if TYPE_CHECKING:
    from sash.kernels.opencl.translator import Translator

RESERVED = set(
    """auto break case char const continue default do double else enum extern float for goto if inline int long register restrict return
    short signed sizeof static struct switch typedef union unsigned void volatile while kernel global local private constant half bool
    uchar ushort uint ulong event_t size_t image2d_t sampler_t true false NULL min max abs clamp mix step sign dot cross length distance
    select any all barrier exp log sin cos tan pow sqrt floor ceil round trunc isnan isinf popcount clz rotate mad fma hypot pipe as_long
    I""".split()  # noqa: SIM905
)
NO_VECTORS = "#pragma clang loop vectorize(disable)"


@dataclass
class FunctionState:
    """A function that is being written."""

    definition: ast.FunctionDef
    wraps: bool
    variables: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Value] = field(default_factory=dict)
    returns: Any = None
    lines: list[str] = field(default_factory=list)
    temporaries: int = 0
    changed: bool = False


def c_name(name: str) -> str:
    return f"{name}_" if name in RESERVED or name.endswith("_") else name


def variable_name(name: str) -> str:
    return f"v_{name}" if name in RESERVED else f"{name}_v"


def flat_arguments(value: Value) -> list[tuple[str, Any]]:
    """The arguments in C that a value is passed by."""
    if isinstance(value.type, Bundle):
        return [pair for part in value.parts or () for pair in flat_arguments(part)]
    return [(value.text, value.type)]


class FunctionWriter:
    """Writes the statements of one function."""

    def __init__(self, translator: Translator, name: str, function: FunctionState) -> None:
        self.t, self.name, self.f = translator, name, function
        self.indent = 0

    # Statements.

    def statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            try:
                self.statement(statement)
            except Untranslatable as error:
                line = ast.unparse(statement).splitlines()[0]
                raise UncompilableFunction(f"in {self.t.origin(self.name)}, `{line}`: devices cannot run {error}") from error

    def line(self, text: str) -> None:
        self.f.lines.append("    " * self.indent + text)

    def block(self, body: list[ast.stmt]) -> None:
        self.indent += 1
        self.statements(body)
        self.indent -= 1

    def statement(self, s: ast.stmt) -> None:
        match s:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return
            case ast.Expr(value=value):
                text = self.expression(value).text
                if text:
                    self.line(f"{text};")
            case ast.Assign(targets=[target], value=value):
                self.assign(target, self.expression(value))
            case ast.AugAssign(target=target, op=op, value=value):
                load = ast.parse(ast.unparse(target), mode="eval").body
                self.assign(target, self.t.operators.binary(op, self.expression(load), self.expression(value), wraps=self.f.wraps))
            case ast.If(test=test, body=body, orelse=orelse):
                condition = self.expression(test)
                if condition.constant is not None:
                    self.statements(body if condition.constant else orelse)
                    return
                self.line(f"if ({self.t.operators.truth(condition).text}) {{")
                self.block(body)
                if orelse:
                    self.line("} else {")
                    self.block(orelse)
                self.line("}")
            case ast.While(test=test, body=body, orelse=[]):
                self.loop(test, body)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=bounds), body=body, orelse=[]):
                self.counted(name, [self.expression(b) for b in bounds], body)
            case ast.Return(value=value):
                self.returned(value)
            case ast.Break():
                self.line("break;")
            case ast.Continue():
                self.line("continue;")
            case ast.Raise():
                raise Untranslatable("functions that raise an error")
            case ast.For():
                raise Untranslatable("loops over anything but range(...)")
            case _:
                raise Untranslatable(f"this statement ({type(s).__name__.lower()})")

    def loop(self, test: ast.expr, body: list[ast.stmt]) -> None:
        before = len(self.f.lines)
        condition = self.t.operators.truth(self.expression(test)).text
        hoisted = self.f.lines[before:]
        if hoisted:
            del self.f.lines[before:]
            self.hint()
            self.line("while (true) {")
            self.f.lines += ["    " + h for h in hoisted]
            self.line(f"    if (!({condition})) break;")
        else:
            self.hint()
            self.line(f"while ({condition}) {{")
        self.block(body)
        self.line("}")

    def hint(self) -> None:
        """Keep compilers from reordering a loop whose order matters; one takes the search for a first row for a reduction, and is wrong."""
        if self.t.in_order:
            self.f.lines.append(NO_VECTORS)

    def counted(self, name: str, bounds: list[Value], body: list[ast.stmt]) -> None:
        if not 1 <= len(bounds) <= 3 or not all(isinstance(b.type, Scalar) for b in bounds):
            raise Untranslatable("this range")
        first = bounds[0] if len(bounds) > 1 else literal(0)
        last = bounds[1] if len(bounds) > 1 else bounds[0]
        step = bounds[2] if len(bounds) > 2 else literal(1)
        first, last, step = (self.t.operators.converted(b, INT) for b in (first, last, step))
        self.declare(name, INT)
        counter, variable = f"{c_name(name)}_{self.temporary()}", variable_name(name)
        end = f"{counter}_end"
        self.line(f"const long {end} = {last.text};")
        forward = f"{counter} < {end}"
        backward = f"{counter} > {end}"
        if step.constant is None and self.f.wraps:
            condition = f"({step.text}) > 0 ? {forward} : {backward}"
        else:
            condition = backward if step.constant is not None and step.constant < 0 else forward
        self.hint()
        self.line(f"for (long {counter} = {first.text}; {condition}; {counter} += {step.text}) {{")
        self.indent += 1
        self.line(f"{variable} = {counter};")
        self.indent -= 1
        self.block(body)
        self.line("}")

    def returned(self, value: ast.expr | None) -> None:
        if value is None:
            if self.f.wraps:
                raise Untranslatable("a return without a value")
            self.line("return;")
            return
        result = self.expression(value)
        t = result.type
        if result.parts is not None:
            t = Struct(tuple(p.type for p in result.parts))
        wanted = t if self.f.returns is None else joined(self.f.returns, t)
        if wanted is None:
            raise Untranslatable("results of different kinds")
        if wanted != self.f.returns:
            self.f.returns, self.f.changed = wanted, True
        self.t.named(wanted)
        if isinstance(wanted, Struct):
            fields = self.t.operators.converted(Value("", t, self.t.operators.parts_of(result)), wanted)
            texts = [p.text for p in self.t.operators.parts_of(fields)]
            self.line(f"return ({wanted.c}){{{', '.join(texts)}}};")
        else:
            self.line(f"return {self.t.operators.converted(result, wanted).text};")

    def assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self.put(name, value)
            case ast.Tuple(elts=targets):
                parts = self.t.operators.parts_of(value)
                if len(parts) != len(targets):
                    raise Untranslatable("an assignment of tuples of different lengths")
                if len(targets) > 1 and value.parts is not None:  # all are evaluated before any is assigned
                    parts = tuple(self.kept(p) for p in parts)
                for one, part in zip(targets, parts, strict=True):
                    self.assign(one, part)
            case ast.Subscript(value=array, slice=place):
                pointer = self.expression(array)
                if not isinstance(pointer.type, Pointer):
                    raise Untranslatable("an assignment to a field of a tuple")
                element = Scalar(pointer.type.machine)
                self.line(f"{pointer.text}[{self.expression(place).text}] = {self.t.operators.converted(value, element).text};")
            case _:
                raise Untranslatable("this assignment")

    def put(self, name: str, value: Value) -> None:
        t = value.type
        if is_columns(value):
            raise Untranslatable("columns in a variable")
        if value.parts is not None:
            t = Struct(tuple(p.type for p in value.parts))
        t = self.declare(name, t)
        variable = variable_name(name)
        if isinstance(t, Struct):
            parts = self.t.operators.parts_of(self.t.operators.converted(value, t)) if value.type != t or value.parts is not None else None
            if parts is None:
                self.line(f"{variable} = {value.text};")
            else:
                self.line(f"{variable} = ({t.c}){{{', '.join(p.text for p in parts)}}};")
        else:
            self.line(f"{variable} = {self.t.operators.converted(value, t).text};")

    def declare(self, name: str, t: Any) -> Any:
        """Note that a variable is assigned a value of this type; returns the type that it has."""
        known = self.f.variables.get(name)
        if known is None and name in self.f.parameters:
            known = self.f.parameters[name].type
            if isinstance(known, Bundle):
                raise Untranslatable("an assignment to columns")
        wanted = t if known is None else joined(known, t)
        if wanted is None:
            raise Untranslatable(f"two kinds of values in {name}")
        if wanted != self.f.variables.get(name):
            self.f.variables[name] = wanted
            self.f.changed = True
        self.t.named(wanted)
        return wanted

    def temporary(self) -> int:
        self.f.temporaries += 1
        return self.f.temporaries

    def kept(self, value: Value) -> Value:
        """A value in a variable of its own."""
        if value.constant is not None or is_columns(value) or isinstance(value.type, Pointer):
            return value
        if value.parts is not None:
            return Value("", Struct(tuple(p.type for p in value.parts)), tuple(self.kept(p) for p in value.parts))
        name = f"t{self.temporary()}_"
        self.line(f"const {self.t.named(value.type).c} {name} = {value.text};")
        return Value(name, value.type)

    # Expressions.

    def expression(self, e: ast.expr) -> Value:
        ops = self.t.operators
        match e:
            case ast.Constant(value=bool() | int() | float() as value):
                return literal(value)
            case ast.Name(id=name):
                return self.name_of(name)
            case ast.Tuple(elts=elements):
                parts = tuple(self.expression(x) for x in elements)
                together = Value("", Struct(tuple(p.type for p in parts)), parts)
                return Value("", type_of_parts(parts), parts) if is_columns(together) or not parts else together
            case ast.BinOp(left=left, op=op, right=right):
                return ops.binary(op, self.expression(left), self.expression(right), wraps=self.f.wraps)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return ops.negative(self.expression(operand), wraps=self.f.wraps)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ops.negated(self.expression(operand))
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.expression(operand)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return ops.binary(ast.BitXor(), self.expression(operand), literal(-1), wraps=self.f.wraps)
            case ast.Compare(left=left, ops=comparisons, comparators=others):
                return self.compared(left, comparisons, others)
            case ast.BoolOp(op=op, values=values):
                return self.logical(isinstance(op, ast.And), [self.expression(v) for v in values])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition = self.expression(test)
                if condition.constant is not None:
                    return self.expression(body if condition.constant else orelse)
                return ops.chosen(self.simple(condition), self.expression(body), self.expression(orelse))
            case ast.Subscript(value=value, slice=place):
                return self.subscript(self.expression(value), place)
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in ("math", "np", "numpy") and name in CONSTANTS:
                return literal(CONSTANTS[name])
            case ast.Call(func=func, args=arguments, keywords=[]):
                return self.called(func, [self.expression(a) for a in arguments])
            case _:
                raise Untranslatable(f"`{ast.unparse(e)}`")

    def simple(self, value: Value) -> Value:
        """A condition that is read several times, in a variable."""
        return value if len(value.text) < 40 or isinstance(value.type, Vector) else self.kept(value)

    def name_of(self, name: str) -> Value:
        if name in self.f.variables:
            t = self.f.variables[name]
            return Value(variable_name(name), t)
        if name in self.f.parameters:
            return self.f.parameters[name]
        raise Untranslatable(f"{name}, which may have no value here")

    def compared(self, left: ast.expr, comparisons: list[ast.cmpop], others: list[ast.expr]) -> Value:
        values = [self.expression(x) for x in (left, *others)]
        result = self.t.operators.compared(comparisons[0], values[0], values[1])
        for op, a, b in zip(comparisons[1:], values[1:], values[2:], strict=False):
            result = self.t.operators.both("&", result, self.t.operators.compared(op, a, b))
        return result

    def logical(self, is_and: bool, values: list[Value]) -> Value:
        ops = self.t.operators
        result = values[-1]
        for value in reversed(values[:-1]):
            if (value.type == BOOL and result.type == BOOL) or isinstance(value.type, Vector):
                result = ops.both("&" if is_and else "|", value, result)
            else:
                result = ops.chosen(value, result, value) if is_and else ops.chosen(value, value, result)
        return result

    def subscript(self, value: Value, place: ast.expr) -> Value:
        if isinstance(value.type, Pointer):
            index = self.expression(place)
            element = Scalar(value.type.machine)
            raw = f"{value.text}[{index.text}]"
            return Value(raw, Scalar("uint8") if element.machine == "bool" else element)
        index = self.expression(place)
        if not isinstance(index.constant, int):
            raise Untranslatable("a place in a tuple that is not a constant")
        parts = value.parts if isinstance(value.type, Bundle) else self.t.operators.parts_of(value)
        assert parts is not None
        if not -len(parts) <= index.constant < len(parts):
            raise Untranslatable(f"field {index.constant} of {len(parts)}")
        return parts[index.constant]

    def called(self, func: ast.expr, arguments: list[Value]) -> Value:
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            module = {"np": "numpy"}.get(func.value.id, func.value.id)
            return self.t.functions.of_module(module, func.attr, arguments)
        if not isinstance(func, ast.Name):
            raise Untranslatable(f"`{ast.unparse(func)}`")
        name = func.id
        if name in self.t.definitions:
            return self.defined(name, arguments)
        if name in self.t.extra_words:
            value: Value = self.t.extra_words[name](self, *arguments)
            return value
        result = self.t.functions.call(name, arguments)
        if result is None:
            raise Untranslatable(f"calls of {name}")
        return result

    def defined(self, name: str, arguments: list[Value]) -> Value:
        """A call of a function of the module; a tuple that it returns is put into a variable."""
        passed: list[str] = []
        types = []
        for a in arguments:
            if is_columns(a):
                t = a.type if isinstance(a.type, Bundle) else type_of_parts(a.parts or ())
                types.append(t)
                passed += [text for text, _ in flat_arguments(Value("", t, a.parts))]
            else:
                t = Struct(tuple(p.type for p in a.parts)) if a.parts is not None else a.type
                types.append(self.t.named(t))
                passed.append(self.whole(a, t))
        function = self.t.function(name, tuple(types))
        call = f"{function.name}({', '.join(passed)})"
        if function.returns is None:
            return Value(call, None)
        value = Value(call, function.returns)
        return self.kept(value) if isinstance(function.returns, Struct) else value

    def whole(self, value: Value, t: Any) -> str:
        if value.parts is None:
            return value.text
        return f"({t.c}){{{', '.join(p.text for p in value.parts)}}}"
