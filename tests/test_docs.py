"""The pages: what they show runs, what they list is what the code has, and the site builds."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from cores import load_dataset
from cores.cli.command import parse
from cores.cli.commands import all_commands
from cores.config import ExplanationConfig
from cores.config.models import CONVS, MODELS
from cores.data.catalogue import REGISTERED
from cores.data.inputs import columns
from cores.data.inputs.sources import read_rows
from cores.data.molecules import ATOM_COLUMNS, BOND_COLUMNS, VERSION
from cores.data.splits import GIVEN
from cores.plugins import load_plugins
from cores.risk import smallest_risk
from cores.runs import curve, promise, scripts
from cores.runs.records import FIELDS
from cores.verdict import Kind

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
EPOCHS = 2
"""Of trainings whose result does not matter."""


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text()


def blocks(text: str, kinds: str) -> list[str]:
    """The code blocks of some kinds, without those that have a title."""
    return re.findall(rf"^```(?:{kinds})\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def titled(text: str) -> dict[str, str]:
    """The code blocks that show a file, by the name of the file."""
    pattern = r'^```\w+ title="([^"]+)"\n(.*?)^```'
    return dict(re.findall(pattern, text, re.DOTALL | re.MULTILINE))


def shell_lines(program: str) -> Iterator[list[str]]:
    """The arguments of a program wherever a page calls it."""
    for path in PAGES:
        for block in blocks(path.read_text(), "sh|console"):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith(f"{program} "):
                    yield shlex.split(line, comments=True)[1:]


def test_scripts_on_the_pages_are_there() -> None:
    texts = [path.read_text() for path in (*PAGES, *ROOT.glob("results/*.md"))]
    named = set(re.findall(r"(?<!tests/)(?:benchmarks|examples|tools)/\w+\.py", "".join(texts)))
    assert len(named) > 5
    assert not [name for name in named if not (ROOT / name).exists()]


def shortened(code: str) -> str:
    """Code that names its epochs, with fewer of them."""
    return re.sub(r"\bepochs=\d+", f"epochs={EPOCHS}", code)


@pytest.fixture
def work(short_judge: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder in which every training, the judge's too, ends after a moment."""
    from cores.estimator import parameters

    def by_size(graphs: int) -> dict[str, Any]:
        return {"training": {"epochs": EPOCHS, "batch_size": 32}}

    monkeypatch.setattr(parameters, "own_data_settings", by_size)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_the_readme_is_read_in_five_minutes_and_the_pages_in_two_hours() -> None:
    words = [len(path.read_text().split()) for path in PAGES]
    assert words[0] <= 900
    assert sum(words) <= 22_000


@pytest.fixture
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The scripts of the page on extending, which commands import."""
    load_plugins()  # else what they register would be gone after the first test
    before = [dict(table) for table in (MODELS, CONVS, REGISTERED)]
    monkeypatch.setattr(scripts, "_imported", [])
    for code in blocks(page("extending"), "python"):
        (tmp_path / code.splitlines()[0].removeprefix("# ")).write_text(code)
    monkeypatch.chdir(tmp_path)
    yield
    for table, rows in zip((MODELS, CONVS, REGISTERED), before, strict=True):
        table.clear()
        table.update(rows)


@pytest.mark.usefixtures("own_files")
@pytest.mark.parametrize("arguments", list(shell_lines("cores")), ids=" ".join)
def test_every_command_on_the_pages_is_understood(arguments: list[str]) -> None:
    command, _ = parse(arguments, all_commands())
    assert command.name == arguments[0]


def test_commands_stand_in_blocks_that_are_tested() -> None:
    """A block without a kind is not looked at."""
    assert len(list(shell_lines("cores"))) > 30
    for path in PAGES:
        plain = "".join(blocks(path.read_text(), ""))
        assert not re.search(r"^cores ", plain, re.MULTILINE), f"{path.name}: write ```sh"


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked")
def test_the_blocks_of_the_python_page_run_one_after_the_other(work: Path) -> None:
    names: dict[str, Any] = {"__name__": "tutorial"}
    for code in blocks(page("python"), "python"):
        exec(shortened(code), names)
    assert (work / "kept.png").stat().st_size > 1000
    assert (work / "motifs-model" / "README.md").exists()


@pytest.mark.slow
def test_the_python_of_the_readme_runs(work: Path) -> None:
    smiles = [start + end for start in ("CC", "CCC", "CO", "CN") for end in ("O", "N", "Cl", "F")]
    rings = ["c1ccccc1" + text for text in smiles]
    names = {"smiles": smiles + rings, "y": ["chain"] * 16 + ["ring"] * 16, "new": rings[:3]}
    (code,) = blocks((ROOT / "README.md").read_text(), "python")
    exec(code, names)
    assert (work / "my-model").is_dir()


@pytest.mark.slow
def test_the_cells_of_the_notebook_run_in_order(work: Path) -> None:
    text = (ROOT / "examples" / "molecules.ipynb").read_text()
    assert len(text) < 100_000, "outputs are kept small"
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] == "code":
            exec(shortened("".join(cell["source"])), names)
    assert len(names["explanations"]) == len(names["new_smiles"]) == 30
    assert not list(work.iterdir())  # nothing is written unless asked for


def test_the_files_on_the_page_of_inputs_are_read(work: Path) -> None:
    for name, text in titled(page("inputs")).items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(text)
    names: dict[str, Any] = {}
    for code in blocks(page("inputs"), "python"):
        exec(code, names)
    written = {path.name for path in work.iterdir()}
    assert {Path(name).suffix for name in written} == {
        *("", ".csv", ".parquet", ".sdf", ".jsonl", ".npz", ".pt", ".smi")
    }
    for name in written - {"new.smi"}:
        dataset = load_dataset(work / name)
        assert dataset.num_classes == 2, name
        assert dataset.unusable is None or not dataset.unusable.count, name
    (rows,) = read_rows(work / "new.smi", columns.ColumnNames())  # it has no labels
    assert rows.parse().ids == ["ethanol", "phenol"]


def test_the_json_lines_of_the_first_page_are_read(work: Path) -> None:
    (lines,) = blocks(page("start"), "json")
    (work / "shown.jsonl").write_text(lines)
    assert len(load_dataset("shown.jsonl")) == 2


def feature_rows(names: tuple[str, ...]) -> list[str]:
    """The lines of a table of columns: groups, their values, and how many there are."""
    rows = []
    for group, found in groupby(names, lambda name: name.partition(" = ")[0]):
        values = [name.partition(" = ")[2] for name in found]
        told = ", ".join(values) if values[0] else "yes or no"
        rows.append(f"| {group} | {told} | {len(values)} |")
    return rows


def test_the_table_of_features_is_that_of_the_code() -> None:
    text = page("inputs")
    for head, names in (("atom", ATOM_COLUMNS), ("bond", BOND_COLUMNS)):
        table = text[text.index(f"| of a{'n' * (head == 'atom')} {head} |") :]
        shown = table[: table.index("\n\n")].splitlines()[2:]
        assert shown == feature_rows(names)
    assert f"version {VERSION} of the columns" in " ".join(text.split())


def test_the_names_of_columns_are_those_of_the_code() -> None:
    for names in (columns.SMILES, columns.LABEL, columns.ID):
        assert ", ".join(f"`{name}`" for name in names) in page("inputs")
    for said in GIVEN:
        assert f"`{said}`" in page("splits")


def test_every_field_of_a_record_has_a_line() -> None:
    shown = re.findall(r"^\| `(\w+)` \| [^|]*(?:\|[^|]*){3}\|$", page("predict"), re.MULTILINE)
    assert shown == [*FIELDS]


def test_every_verdict_has_a_line() -> None:
    for kind in get_args(Kind):
        assert f"\n| {kind} |" in page("honesty")


def test_the_sufficiencies_on_the_pages_are_those_of_the_code() -> None:
    text = " ".join(page("honesty").split())
    assert f"τ = {', '.join(f'{value:g}' for value in curve.SUFFICIENCIES)} and at" in text
    assert f"from {min(promise.SUFFICIENCIES):.2f} to {max(promise.SUFFICIENCIES):.2f}" in text
    assert f"(`--sufficiency`, {ExplanationConfig().sufficiency:g})" in text


def test_every_kind_of_part_has_a_line() -> None:
    kinds = get_args(get_type_hints(ExplanationConfig)["parts"])
    assert re.findall(r"^\| `--parts (\w+)` ", page("predict"), re.MULTILINE) == [*kinds]


def test_the_smallest_risks_on_the_page_are_those_of_the_code() -> None:
    line = r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$"
    rows = re.findall(line, page("honesty"), re.MULTILINE)
    assert len(rows) == 4
    for n, *shown in rows:
        assert shown == [f"{smallest_risk(int(n), delta):.3f}" for delta in (None, 0.1, 0.05)]


def test_every_test_behind_a_guarantee_exists() -> None:
    guarantees = re.findall(r"^\| .*", page("promises"), re.MULTILINE)[2:]
    assert len(guarantees) > 10
    for line in guarantees:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", line)
        assert named, line
        for path, test in named:
            assert re.search(rf"^def {test}\(", (ROOT / path).read_text(), re.MULTILINE), test


def test_schedulers_on_the_pages_are_closed_to_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """dask understands the commands, and each names one interface and its certificates."""
    from distributed.cli import dask_scheduler, dask_worker

    monkeypatch.chdir(tmp_path)
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).touch()
    found = []
    for kind, *arguments in shell_lines("dask"):
        main = {"scheduler": dask_scheduler, "worker": dask_worker}[kind].main
        options = main.make_context(kind, arguments).params
        assert all(options[f"tls_{file}"] for file in ("ca_file", "cert", "key"))
        assert options["host"]
        assert options["dashboard_address"].startswith("127.0.0.1:")
        found.append(kind)
    assert found == ["scheduler", "worker"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as ``make docs`` builds them."""
    out = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--fail-on-warning", "-c", "docs", ".", str(out)]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options], cwd=ROOT, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    return out


@pytest.mark.slow
def test_the_site_asks_no_other_site(site: Path) -> None:
    tags = r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?(?:https?:)?//[^\"\s>]*"
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for path in pages:
        fetched = [
            tag for tag in re.findall(tags, path.read_text()) if 'rel="canonical"' not in tag
        ]
        assert not fetched, path
    for path in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", path.read_text()), path


@pytest.mark.slow
def test_the_reference_is_made_from_the_docstrings(site: Path) -> None:
    reference = (site / "docs" / "reference.html").read_text()
    for name in ("Cores", "load_dataset", "register_conv", "conformal.aps_scores", "UserError"):
        assert f'id="cores.{name}"' in reference
    assert ":class:" not in reference
