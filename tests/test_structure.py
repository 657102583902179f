"""The structure, kept by tests: imports point one way, paper map and results are true."""

import ast
import importlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cores

ROOT = Path(__file__).resolve().parents[1]
SOURCE, PAPER = ROOT / "src" / "cores", ROOT / "src" / "cores_paper"
ORDER = (
    *("errors", "plugins", "files", "conformal", "risk", "reward", "ranks", "config", "verdict"),
    *("graphs", "tasks", "data", "models", "ppo", "algorithm1", "evaluation", "training", "runs"),
    *("explain", "serve", "estimator", "cli"),
)
"""A module imports only from its left, or from its own package."""


NOT_MODULES = {f"cores.{name}" for name in (*cores.__all__, "__version__")}


def part_of(module: str) -> str:
    return module.split(".")[1]


def imported(path: Path) -> set[str]:
    """Modules of ours that a file imports, `from cores import X` and lazy imports included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports in full"
            if node.module == "cores":
                found |= {f"cores.{alias.name}" for alias in node.names}
            else:
                found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith(("cores.", "cores_paper"))} - NOT_MODULES


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_imports_point_one_way(path: Path) -> None:
    relative = path.relative_to(SOURCE).with_suffix("").parts
    if len(relative) == 1 and relative[0] in ("__init__", "__main__"):
        return  # the package's own door may name anything
    own = relative[0]
    for module in imported(path):
        assert module.startswith("cores."), f"the tool must not import {module}"
        used = part_of(module)
        assert ORDER.index(used) <= ORDER.index(own), f"{own} must not import {used}"


def test_the_second_package_imports_only_what_extensions_may() -> None:
    """Names of ``cores.__all__``, and modules that the page on extending lists."""
    page = (ROOT / "docs" / "extending.md").read_text()
    _, table, _ = page.split("<!-- modules -->\n")
    listed = set(re.findall(r"`(cores\.[\w.]+)`", table))
    assert all(importlib.util.find_spec(module) for module in listed)
    used = set().union(*(imported(path) for path in PAPER.rglob("*.py")))
    assert {module for module in used if module.startswith("cores.")} == listed, "mend the list"


@pytest.mark.parametrize("name", ["conformal", "risk", "reward"])
def test_the_mathematics_knows_nothing_of_the_rest(name: str) -> None:
    assert imported(SOURCE / f"{name}.py") <= {"cores.errors"}


def test_importing_the_package_imports_no_torch() -> None:
    script = "import sys, cores; cores.register_model; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_every_public_name_is_there() -> None:
    assert len(cores.__all__) <= 15
    for name in cores.__all__:
        assert getattr(cores, name).__doc__, name


def test_every_name_in_the_paper_map_exists() -> None:
    text = (ROOT / "docs" / "paper_map.md").read_text()
    names = re.findall(r"`(cores(?:_paper)?\.[\w.]+)`", text)
    assert len(names) > 10
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_every_deviation_marked_in_the_code_is_listed_and_every_listed_one_is_marked() -> None:
    files = (path for package in (SOURCE, PAPER) for path in package.rglob("*"))
    code = "\n".join(each.read_text() for each in files if each.suffix in (".py", ".toml"))
    marked = set(re.findall(r"Deviation (D\d+)", code))
    page = (ROOT / "docs" / "deviations.md").read_text()
    listed = set(re.findall(r"^\| (D\d+) \|", page, flags=re.MULTILINE))
    assert marked == listed


RESULTS = """
import json, sys
from pathlib import Path
import page

made = page.parts(Path(sys.argv[1]))
assert "torch" not in sys.modules, "pages are filled on a machine with little else"
print(json.dumps(made))
"""


def test_the_pages_show_what_the_committed_rows_come_to() -> None:
    """The parts are made by a process that does not check every call."""
    from page import filled, pages

    command = [sys.executable, "-c", RESULTS, str(ROOT / "results")]
    told = subprocess.run(command, cwd=ROOT / "tools", check=True, stdout=subprocess.PIPE)
    made = json.loads(told.stdout)
    texts = [path.read_text() for path in pages(ROOT)]
    for text in texts:
        assert filled(text, made) == text, "run: make results"
    shown = re.findall(r"<!-- make results: ([\w-]+) -->", "".join(texts))
    assert sorted(shown) == sorted(made)
