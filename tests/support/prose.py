"""Measure sentences of code and documents.

`python -m support.prose` prints the rates by room and page, `--list PATTERN` the sentences with a pattern.

A pattern is a construction that makes a native reader stop. Some sentences with one are right, so tests bound rates and
do not forbid single sentences.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PATTERNS: Final = {
    "chain": r"(?i)^(?:(?!\. ).)*?\bof\b[^.;:]*\bof\b[^.;:]*\bof\b",
    "none-tail": r"[;,:] None (?:if|where|when|for|unless|of|before|after)\b|\bNone (?:where|of)\b",
    "headless": (
        r"^(?:Rows|Bytes|Fragments|Queries|Share|Pages|Values|Texts|Vectors|Entries|Keys|Files|Times|Seconds|Columns"
        r"|Words|Blocks|Batches|Requests|Candidates|Partitions|Nodes|Lists|Tasks|Numbers|Items)\b(?! ?\()[^.]*"
        r"\b(?:up to which|from which on|at most|at least|at a time|at once|that are|that is|of which|which are)\b"
    ),
    "where-if": (
        r"(?i)\bwhere (?:there|it|they|this|these|that|none|no|nothing|not|one|all|any|both|each|many|few|such|its|only"
        r"|several|more)\b"
    ),
    "such-so": (
        r"(?i)\bsuch (?:an?|are|is|as these)\b|\bso (?:does|do|did|is|are|many|much|few|long)\b|\b(?:as|in) such\b"
        r"|\bdone so\b|\bso,? too\b|\bthe more\b|\bthe same of\b"
    ),
    "place": (
        r"(?i)(?<!in )(?<!in-)(?<!take )(?<!takes )(?<!took )(?<!takes its )(?<!decimal )\bplaces?\b(?! ?holder)"
    ),
    "thing-says": (
        r"(?i)\b(?:that|which|who|what|it|they|table|file|index|segment|manifest|query|statement|scan|column|version)s?"
        r" "
        r"(?:tells?|says?|asks?|asked|knows?|told|said|speaks?|wants?|answers?)\b"
    ),
    "ours": (
        r"(?i)\bof (?:ours|theirs|its own|others|DuckDB's own|pylance's|somebody|everybody)\b|\bthose of\b|\bthat of\b"
    ),
    "is-no": (
        r"(?i)\b(?:is|are|was|were|be|has|have|had|holds?|takes?|needs?|gives?|makes?|finds?|reads?) (?:no|none)\b"
        r"(?! (?:longer|more|way|matter|need))"
    ),
    "inverted": (
        r"(?:^|[.!?] )(?:Of |Refused (?:is|are)|Missing (?:is|are)|Not (?:every|all|read|taken|known)|Only then|With it"
        r"|To it|By (?:this|it)|For (?:this|it)\b|So\b|Thus\b|Neither\b)"
    ),
    "what-is": (r"(?i)\bwhat (?:is|are|was|were|it|they|has|have|can|stands?|comes?|lies?|a|the|others?|this|these)\b"),
    "at-hand": (
        r"(?i)\bat hand\b|\bcome(?:s)? to\b(?! (?:an end|a))|\bto be had\b|\bby itself\b|\bapart from\b"
        r"|\bas (?:long|many|few|large)(?:\.|;|,|$)|\bstand(?:s)? (?:in|for|beside|there|alone)\b"
        r"|\blies? (?:in|at|beside)\b|\bgo(?:es)? with\b|\bhas to do\b|\balike\b|\bbeside\b|\bbesides\b|\btoo\.$"
        r"|\bin turn\b|\bfrom which on\b|\bup to which\b"
    ),
}
"""Patterns by name. The issue each has, with a better sentence, is in CONTRIBUTING.md."""

_COMPILED: Final = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}
_CODE: Final = re.compile(r"```.*?```|^ {4,}(?:>>>|\.\.\. |\$ ).*?$|`[^`]*`|\{[^}]*\}", re.DOTALL | re.MULTILINE)
_FENCE: Final = re.compile(r"^(```+|~~~+|:::+).*?^\1 *$|^<!--.*?-->$", re.DOTALL | re.MULTILINE)
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Sentence:
    """A sentence, or a table cell, and the file and line where it begins."""

    file: Path
    line: int
    text: str
    is_cell: bool = False

    @cached_property
    def patterns(self) -> list[str]:
        """Names of the patterns that it has."""
        return [name for name, pattern in _COMPILED.items() if pattern.search(self.text)]

    @property
    def words(self) -> int:
        """Number of words. A span of code is one word."""
        return len(self.text.split())

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.text}"


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of at least four words of a text. Spans of code become the word "x"."""
    plain = _CODE.sub(lambda found: "x" if re.match("`(?!``)", found[0]) else " ", text)
    for block in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.|\w+:)\s", plain):
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`\"'(]|x\b)", " ".join(block.split())):
            if len(sentence.split()) >= 4:
                yield sentence


def of_code(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a module's docstrings, constant docstrings and comments."""
    source = path.read_text(encoding="utf-8")
    for line, text in [*_docstrings(ast.parse(source)), *_comments(source)]:
        yield from (Sentence(path, line, sentence) for sentence in sentences(text))


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if text := ast.get_docstring(node):
            yield getattr(node, "lineno", 1), text
        for before, after in zip(node.body, node.body[1:], strict=False):
            if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                value = after.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield after.lineno, value.value


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(?:type:|noqa|ruff|pragma|!)", token.string):
            yield token.start[0], token.string.lstrip("# ")


def of_errors(path: Path) -> Iterator[Sentence]:
    """Yield the strings from which a module builds errors."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(("Error", "warn")):
            continue
        for argument in (*node.args, *(word.value for word in node.keywords)):
            if isinstance(argument, ast.Constant | ast.JoinedStr):
                text = "".join(
                    part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "x"
                    for part in (argument.values if isinstance(argument, ast.JoinedStr) else [argument])
                )
                yield from (Sentence(path, node.lineno, sentence) for sentence in sentences(text))


def of_markdown(path: Path) -> Iterator[Sentence]:
    """Yield the sentences and table cells of a page, without its code blocks."""
    text = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), path.read_text(encoding="utf-8"))
    paragraph: list[str] = []
    begin = 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_row = line.startswith("|")
        if is_row or not line.strip() or re.match(r"\s*(?:[-*]|\d+\.|#+|:) ", line):
            yield from (Sentence(path, begin, sentence) for sentence in sentences(_plain("\n".join(paragraph))))
            paragraph, begin = [], number
        if is_row:
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            plain = [_CODE.sub("x", _plain(cell)).strip() for cell in cells]
            yield from (Sentence(path, number, cell, True) for cell in plain if re.search(r"\w", cell))
        elif line.strip() and (paragraph or not line.startswith("    ")):
            paragraph.append(line.strip().lstrip("-*#: "))


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", text).replace("**", "").replace("*", "")


def rate(found: Iterable[Sentence]) -> float:
    """Return how many of 1,000 sentences have a pattern. Cells of fewer than four words do not count."""
    counted = [bool(sentence.patterns) for sentence in found if sentence.words >= 4]
    return 1000 * sum(counted) / len(counted) if counted else 0.0


def code_by_room() -> dict[str, list[Sentence]]:
    """Return the sentences of the package by room: a folder, or a module of the top folder."""
    rooms: dict[str, list[Sentence]] = defaultdict(list)
    package = ROOT / "lance_duck"
    for path in sorted(package.rglob("*.py")):
        if not path.name.endswith("_pb2.py"):
            rooms[path.relative_to(package).parts[0]] += of_code(path)
    return rooms


def pages() -> list[Path]:
    """Return the documents that people write, without generated ones."""
    outside = {"_build", "generated"}
    site = (path for path in sorted((ROOT / "docs").rglob("*.md")) if not outside & set(path.parts))
    return [*(path for path in sorted(ROOT.glob("*.md"))), *site]


def main(*arguments: str) -> None:
    """Print the rates, or the sentences with a pattern."""
    code, documents = code_by_room(), {page: list(of_markdown(page)) for page in pages()}
    if arguments[:1] == ("--list",):
        for sentence in (each for found in [*code.values(), *documents.values()] for each in found):
            if arguments[1] in sentence.patterns:
                print(sentence)
        return
    print(f"lance_duck: {rate(sentence for found in code.values() for sentence in found):.0f} of 1,000")
    for room, found in sorted(code.items(), key=lambda item: -rate(item[1])):
        print(f"  {rate(found):4.0f}  {room}, {len(found)} sentences")
    for page, found in documents.items():
        lengths = [sentence.words for sentence in found if not sentence.is_cell] or [0]
        cells = [sentence.words for sentence in found if sentence.is_cell] or [0]
        name = page.relative_to(ROOT)
        print(
            f"  {rate(found):4.0f}  {name}: {len(found)} sentences of {sum(lengths) / len(lengths):.0f} words, "
            f"the longest {max(lengths)}; cells of {sum(cells) / len(cells):.0f}, the longest {max(cells)}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
