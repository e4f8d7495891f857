#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""generate.py INCLUDE_DIRECTORY... --output DIRECTORY TABLE...: writes the wrappers of the calls of the APIs that the
tables describe, NAME.cpp for NAME.json, and calls.cpp and trace.map for all of them.

Calls, constants, enumerations and structures are read from the headers; a table has what these do not tell. Its
"directions" are patterns of arguments, CALL.ARGUMENT: "new" (a pointer to a handle that the call returns), "end" (a
handle that a successful call destroys), "inout", "in" and "out". Without one, a pointer to what is not constant and no
object is "out". Its "arguments", named so or for all calls without "CALL.", have "[COUNT]", the length of an array or,
in bytes, of memory without a type, or a decoder; so have the "results", by their types."""
import argparse
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "cmake"))
sys.dont_write_bytecode = True
from constants import functions  # noqa: E402, from that directory

SIGNED = {"int", "DAT_COUNT", "DAT_FD", "DAT_EXTENDED_OP", "VIP_LONG", "VIP_SHORT"}
UNSIGNED = {"size_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "DAT_UINT32", "DAT_UINT64", "DAT_VLEN",
            "DAT_SEG_LENGTH", "DAT_CONN_QUAL", "DAT_PORT_QUAL", "DAT_TIMEOUT", "DAT_HA_LB", "VIP_ULONG", "VIP_UINT8",
            "VIP_UINT16", "VIP_UINT32", "VIP_USHORT"}
KEYS = {"DAT_LMR_CONTEXT", "DAT_RMR_CONTEXT", "DAT_VADDR"}  # better read as hexadecimal numbers
BOOLEANS = {"bool", "DAT_BOOLEAN", "VIP_BOOLEAN"}
POINTERS = {"VIP_PVOID", "DAT_PVOID", "DAT_AGENT_FUNC", "VIP_QOS", "VIP_EVENT_HANDLE"}
STRINGS = {"DAT_NAME_PTR"}
EXTENSION_WORDS = 16
NO_WAIT = re.compile(r"Done$|_dequeue$|_get_wc$")  # polls that return at once


class Headers:
    """The declarations of an API, with those of a text that are in no header."""

    def __init__(self, directories, names, text):
        for name in names:
            path = next(path for path in (directory / name for directory in directories) if path.exists())
            text += path.read_text()
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
        self.macros = re.findall(r"^#define (\w+) +\S", text, re.M)
        text = re.sub(r"^\s*#(\\\n|.)*$", "", text, flags=re.M)
        self.functions = functions(text)
        self.enums = {}
        for tag, body, name in re.findall(r"enum (\w*)\s*\{([^}]*)\}\s*(\w*);", text):
            constants = [each.split("=")[0].strip() for each in body.split(",") if each.strip()]
            self.enums[name or "enum " + tag] = constants
        self.structs = {}
        typedefs = dict(re.findall(r"typedef struct (\w+) (\w+);", text))
        for tag, body, name in re.findall(r"struct (\w*)\s*\{([^{}]*)\}\s*(\w*);", text):
            fields = re.findall(r"([\w ]+?[\s*]+)(\w+)((?:\[\w+\])*)\s*;", body)
            self.structs[name or typedefs.get(tag, "struct " + tag)] = [
                (" ".join(kind.split()), field, array) for kind, field, array in fields]


class Argument:
    """A parameter, as it is declared."""

    def __init__(self, text):
        self.count, self.decoder, self.direction = None, "", "in"
        if function := re.search(r"\(\*(\w+)\)\(", text):
            self.name, self.kind, self.declaration = function[1], "void*", text
            return
        kind, self.name, length = re.fullmatch(r"(.*?)(\w+)(?:\[(\w*)\])?", text).groups()
        self.kind = type_of(kind) + ("*" if length is not None else "")
        self.count = length or None
        self.declaration = f"{self.kind} {self.name}"


class Table:
    def __init__(self, path, directories, first_call):
        self.name = path.stem
        data = json.loads(path.read_text())
        if "like" in data:
            data = json.loads((path.parent / data["like"]).read_text()) | data
        self.data = data
        self.undeclared = "".join(f"\n{prototype};\n" for prototype in data.get("undeclared", []))
        self.headers = Headers(directories, data["headers"], self.undeclared)
        self.calls = {name: function for name, function in sorted(self.headers.functions.items())
                      if re.fullmatch(data["calls"], name)}
        self.first_call = first_call
        self.handles = data["handles"]
        self.needed = list(data.get("structs", []))  # structures to decode

    # ---- Constants ---------------------------------------------------------------------------------------------------

    def constants_of(self, what):
        """The names of an enumeration ("enum NAME"), of the macros that a pattern matches, or of a list."""
        if isinstance(what, list):
            return what
        for name in what.removeprefix("enum "), what:
            if name in self.headers.enums:
                return self.headers.enums[name]
        return [macro for macro in self.headers.macros if re.fullmatch(what, macro)]

    def constant_tables(self):
        named = self.data.get("constants", {}) | self.data.get("flags", {})
        tables = {identifier(name): constants for name, constants in self.headers.enums.items()}
        tables |= {name: constants for name, what in named.items() if (constants := self.constants_of(what))}
        for name, constants in tables.items():
            values = ", ".join(f'{{as_bits({constant}), "{constant}"}}' for constant in constants)
            yield f"[[maybe_unused]] constexpr Constant constants_{name}[] = {{{values}}};"

    # ---- Values ------------------------------------------------------------------------------------------------------

    def decode(self, kind, value, count=None, decoder=""):
        """The C++ statement that writes a value of a C type."""
        how, _, detail = decoder.partition(" ")
        if how in ("milliseconds", "microseconds"):
            return f"show_timeout(record, {value});"
        if how in ("flags", "constant"):
            return self.decode_pointed(kind, value, lambda inner: f"text.{how}(constants_{detail}, as_bits({inner}));")
        if how == "masked":
            show = f"show_{identifier(self.need(base_of(kind)))}(record, *pointed, as_bits({detail}));"
            return f"record.follow({value}, [&](auto* pointed) {{ {show} }});"
        if how == "address":
            return f"text.address({value});"
        if how:
            return f"show_{how}(record, {value}, {detail});"
        base = base_of(kind)
        stars = kind.count("*")
        if count is not None:
            return self.decode_array(base, stars, value, count)
        if base in self.handles and stars == (1 if base.startswith("struct ") else 0):
            return f"record.handle({self.kind_of(base)}, as_bits({value}));"
        if base == "char" and stars == 1 or base == "VIP_CHAR" and stars == 1 or base in STRINGS:
            return f"record.string({value});"
        if base in ("void", "rpma_log_function") or base in self.data.get("opaque", []):
            if stars == 1:
                return f"text.address(reinterpret_cast<const void*>({value}));"
        if stars == 1 and base in self.data.get("in_place", {}):
            return f"{self.data['in_place'][base]}(record, {value});"
        if stars > 0:
            inner = self.decode(kind[:kind.rindex("*")], "*pointed")
            return f"record.follow({value}, [&]([[maybe_unused]] auto* pointed) {{ {inner} }});"
        return self.decode_value(base, value)

    def decode_pointed(self, kind, value, decode):
        if "*" not in kind:
            return decode(value)
        return f"record.follow({value}, [&](auto* pointed) {{ {decode('*pointed')} }});"

    def decode_value(self, base, value):
        if base in self.data.get("custom", []):
            return f"show_{identifier(base)}(record, {value});"
        if base in self.data.get("flags", {}) or re.fullmatch("|".join(self.data.get("flag_enums", [])), base):
            return f"text.flags(constants_{base}, as_bits({value}));"
        if base in self.headers.enums:
            return f"text.constant(constants_{identifier(base)}, as_bits({value}));"
        if base in BOOLEANS:
            return f"text.boolean({value} != 0);"
        if base in POINTERS:
            return f"text.address(reinterpret_cast<const void*>({value}));"
        if base in KEYS:
            return f"text.hexadecimal({value});"
        if base in SIGNED:
            return f"text.number({value});"
        if base in UNSIGNED:
            return f"text.decimal({value});"
        if base in self.headers.structs:
            return f"show_{identifier(self.need(base))}(record, {value});"
        raise SystemExit(f"{self.name}: no decoder for '{base}'")

    def need(self, struct):
        """Notes that a structure must be decoded."""
        if struct not in self.needed:
            self.needed.append(struct)
        return struct

    def decode_array(self, base, stars, value, count):
        if stars == 0 or base in ("void", "char", "VIP_UINT8"):
            return f"record.bytes({value}, {count});"
        number = f"record.pointed({count[1:]}, 1)" if count.startswith("*") else count
        inner = self.decode_value(base, "*item")
        return f"record.list({value}, {number}, [&](auto* item) {{ {inner} }});"

    def kind_of(self, base):
        return "any_kind" if self.handles[base] == "any" else f"kind_{self.handles[base]}"

    def decode_struct(self, name):
        """A function that writes the fields of a structure whose bits are set in a mask: bit 0 for the first field. A
        structure at the end takes the rest of the mask."""
        lines = [f"void show_{identifier(name)}(Record& record, const {name}& value, std::uint64_t mask) {{",
                 "    Text& text = record.text();", "    text.open('{');"]
        fields = self.headers.structs[name]
        for bit, (kind, field, array) in enumerate(fields):
            how = self.data.get("fields", {}).get(f"{name}.{field}", "")
            member = f"value.{field}"
            is_last_struct = field == fields[-1][1] and kind in self.headers.structs
            if how == "omitted":
                continue
            if how.startswith("["):
                code = self.decode(kind, member, count="value." + how[1:-1])
            elif array and kind.split()[-1] in ("char", "VIP_CHAR"):
                code = f"record.string({member}, sizeof {member});"
            elif is_last_struct:
                code = f"show_{identifier(self.need(kind))}(record, {member}, mask >> {bit});"
            else:
                code = self.decode(kind, member, decoder=how)
            condition = f"mask >> {bit} != 0" if is_last_struct else f"(mask >> {bit} & 1) != 0"
            lines.append(f'    if ({condition}) {{ text.field("{field}"); {code} }}')
        return "\n".join([*lines, "    text.close('}');", "}"])

    # ---- Wrappers ----------------------------------------------------------------------------------------------------

    def argument(self, call, text):
        argument = Argument(text)
        place = f"{call}.{argument.name}"
        known = self.data["arguments"]
        how = known.get(place, known.get(argument.name, ""))
        if how.startswith("["):
            argument.count = how[1:-1]
        else:
            argument.decoder = how
        base = base_of(argument.kind)
        stars = argument.kind.count("*") - (base in self.handles and base.startswith("struct "))
        if stars > 0 and "const" not in argument.kind and argument.kind != "void*":
            argument.direction = "out"
        for direction, patterns in self.data["directions"].items():
            matches = re.fullmatch("|".join(patterns), place)
            if matches and (direction != "new" or stars > 0 and base in self.handles):
                argument.direction = direction
        return argument

    def wrapper(self, number, name):
        result, words = self.calls[name]
        decoder = self.data.get("results", {}).get(result, "")
        variadic = words[-1:] == ["..."]
        arguments = [self.argument(name, word) for word in words if word not in ("void", "...")]
        declared = ", ".join([argument.declaration for argument in arguments] + ["..."] * variadic)
        passed = ", ".join([argument.name for argument in arguments]
                           + [f"words[{word}]" for word in range(EXTENSION_WORDS)] * variadic)
        own = f"traced_{self.name}_{name}"
        default = "@" if self.data["version"] == "DAT_1.2" else "@@"
        poll = self.data["polls"].get(name)
        lines = [f'extern "C" __attribute__((visibility("default"))) {result} {own}({declared});',
                 f'__asm__(".symver {own}, {name}{default}{self.data["version"]}");']
        if f" {name}(" not in self.undeclared:
            lines.append(f"static_assert(std::is_same_v<decltype({own}), decltype({name})>);")
        lines += [f"{result} {own}({declared}) {{",
                  f'    static constinit Function<decltype(&{own})> real("{name}", library);']
        if variadic:
            lines += ["    std::array<long, %d> words{};" % EXTENSION_WORDS, "    va_list list;",
                      f"    va_start(list, {arguments[-1].name});",
                      "    for (auto& word : words) word = va_arg(list, long);", "    va_end(list);"]
        lines += [f"    Record record({self.first_call + number}, __builtin_return_address(0));",
                  f"    if (!record.wanted()) return real.get()({passed});",
                  "    [[maybe_unused]] Text& text = record.text();",
                  "    const auto show_inputs = [&] {", *self.inputs(arguments), "    };",
                  f"    record.begin(show_inputs, {'true' if poll else 'false'}, "
                  f"{'false' if poll and NO_WAIT.search(name) else 'true'}{self.key_of(arguments)});",
                  f"    {'' if result == 'void' else 'const auto returned = '}real.get()({passed});",
                  "    record.end();"]
        success = self.data["success"].get(result)
        good = f"returned == {success}" if success else "true"
        empty = f"returned == {poll}" if poll else "false"
        if self.data["version"].startswith("DAT"):
            empty = f"DAT_GET_TYPE(returned) == {poll}" if poll else "false"
        lines += [f"    const bool good = {good};", f"    const bool empty = {empty};",
                  "    record.judge(good, empty);", "    if (record.detailed()) {", "        record.show(show_inputs);",
                  *self.outputs(name, arguments)]
        if result != "void":
            lines += ["        begin_result(text);", "        " + self.decode(result, "returned", decoder=decoder)]
        lines += ["        record.write();", "    }"]
        return "\n".join([*lines, *(["    return returned;"] if result != "void" else []), "}"])

    def key_of(self, arguments):
        if not arguments or arguments[0].decoder:
            return ""
        return f", as_bits({arguments[0].name})"

    def inputs(self, arguments):
        for argument in arguments:
            if argument.direction in ("out", "new"):
                continue
            kind, value = argument.kind, argument.name
            code = self.decode(kind, value, argument.count, argument.decoder)
            label = argument.name + (" (in)" if argument.direction == "inout" else "")
            yield f'        text.field("{label}"); {code}'
            if argument.direction == "end":
                handle = f"record.pointed({value})" if kind.endswith("**") else value
                yield f"        record.forget({self.kind_of(base_of(kind))}, as_bits({handle}));"

    def outputs(self, name, arguments):
        always = name in self.data.get("outputs_on_error", [])
        for argument in arguments:
            if argument.direction not in ("out", "new", "inout"):
                continue
            condition = "!empty" if always else "good"
            code = self.decode(argument.kind, argument.name, argument.count, argument.decoder)
            if argument.direction == "new":
                kind = self.kind_of(base_of(argument.kind))
                code = f"record.rename({kind}, as_bits(record.pointed({argument.name}))); " + code
            if argument.kind.count("*") == 1 and argument.kind.startswith("void"):
                code = f"text.address({argument.name});"
            yield f'        if ({condition}) {{ text.field("{argument.name}"); {code} }}'

    def source(self):
        wrappers = [self.wrapper(number, name) for number, name in enumerate(self.calls)]
        structs = [self.decode_struct(name) for name in self.needed]  # which grows while it is read
        prototypes = [f"[[maybe_unused]] void show_{identifier(name)}(Record& record, const {name}& value, "
                      "std::uint64_t mask = all_fields);"
                      for name in self.needed]
        kinds = sorted(set(self.handles.values()) - {"any"})
        values = "dat" if self.name.startswith("dat") else self.name
        opaque = [f"struct {name.lower()};" for name in self.data.get("opaque", [])]
        return "\n".join([
            "// Generated from " + self.name + ".json by generate.py.", "#include <array>", "#include <cstdarg>",
            "#include <type_traits>", *opaque, *(f"#include <{header}>" for header in self.data["headers"]),
            '#include "tools/run/trace/record.hpp"', "namespace viaduct::trace {", "namespace {",
            f'constexpr Library library{{"{self.data["library"]}", "{self.data["version"]}"}};',
            *(f'constexpr Kind kind_{kind}{{"{kind}"}};' for kind in kinds),
            "[[maybe_unused]] constexpr std::array any_kind{" + ", ".join(f"&kind_{kind}" for kind in kinds) + "};",
            *self.constant_tables(), *prototypes, "}",
            f'}}\n#include "tools/run/trace/{values}_values.hpp"\nnamespace viaduct::trace {{', "namespace {",
            *structs, "}", "}", "using namespace viaduct::trace;", *wrappers, ""])


def type_of(text):
    """A type of C, with its asterisks behind the name."""
    return " ".join(text.replace("*", " * ").split()).replace(" *", "*")


def identifier(name):
    return name.split()[-1]


def base_of(kind):
    """A type of C without const and asterisks."""
    return " ".join(kind.replace("*", " ").replace("const ", " ").split())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", action="append", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("tables", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    entries, versions = [], []
    for path in options.tables:
        table = Table(path, options.include, len(entries))
        (options.output / f"{table.name}.cpp").write_text(table.source())
        api = {"dat2": "dat", "dat1": "dat1.2"}.get(table.name, table.name)
        entries += [f'{{"{api}", "{name}"}}' for name in table.calls]
        names = "".join(f" {name};" for name in table.calls)
        versions.append(f"{table.data['version']} {{ global:{names} }};")
    (options.output / "calls.cpp").write_text(
        '#include "tools/run/trace/board.hpp"\nnamespace viaduct::trace {\nconst Call calls[] = {\n'
        + ",\n".join(entries) + f"\n}};\nconst std::uint32_t call_count = {len(entries)};\n"
        f"static_assert({len(entries)} <= most_calls);\n}}\n")
    versions.append("VIADUCT_TRACE { local: *; };")
    (options.output / "trace.map").write_text("\n".join(versions) + "\n")


if __name__ == "__main__":
    main()
