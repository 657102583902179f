"""Cases for ``make fuzz``, as strategies of hypothesis: files, and a command that reads them.

Most are valid files that the program made or reads, with damage drawn to one of them. Others were
never valid: graphs, tables, settings and rows built from the names that their readers know.
"""

import gzip
import io
import os
import shlex
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, fields
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from hypothesis import strategies as st
from rdkit import Chem

import cores.cli.settings
import cores.runs.compare
import cores.training.judge
import cores_paper.cli.reproduce
import cores_paper.explain.cases
from cores import cli
from cores.cli.command import Command, CommandParser
from cores.cli.commands import all_commands
from cores.cli.options import add_columns, column_names
from cores.cli.settings import run_config, settings_groups
from cores.cli.train import TRAIN
from cores.config import RunConfig
from cores.data.dataset import Dims
from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ID, LABEL, SMILES
from cores.models.build import build_model
from cores.runs.runner import Outcome
from cores.training.journal import Journal
from cores_paper.tables.rows import COLUMNS
from fuzz_damage import FORMS, NUMBERS, damaged

RESULTS = Path(__file__).resolve().parents[1] / "results"
HERE = b"/the/folder/of/the/case"
"""Stands for the folder of a case in its files."""
Files = dict[str, bytes]


@dataclass(frozen=True)
class Case:
    """Files in a folder, and the command that reads them there."""

    files: Files = field(repr=False)
    command: str

    def write(self, folder: Path) -> None:
        """Lay the files out."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.replace(HERE, str(folder).encode()))

    def run(self) -> int:
        """Do the command in the current folder; returns its status."""
        return cli.main(shlex.split(self.command), ALL_COMMANDS)


class Valid(NamedTuple):
    """Cases that the program accepts, and which of their files may be damaged."""

    cases: Sequence[Case]
    which: str = "*"


@st.composite
def damage_to(draw: st.DrawFn, valid: Valid) -> Case:
    """Draw a valid case, and damage to one of its files."""
    case = draw(st.sampled_from(valid.cases))
    name = draw(st.sampled_from([name for name in case.files if fnmatch(name, valid.which)]))
    others = [content for each in valid.cases for content in each.files.values()]
    files = dict(case.files)
    match draw(st.sampled_from(("damage",) * 18 + ("drop", "swap"))):
        case "drop":
            del files[name]
        case "swap":
            files[name] = draw(st.sampled_from(others))
        case _:
            random = draw(st.randoms(use_true_random=False))
            files[name] = damaged(name, files[name], others, random)
    return Case(files, case.command)


# Commands


def _read(options: Namespace) -> dict[str, Any]:
    columns = column_names(options)
    dataset = load_dataset(options.path, columns=columns, on_error=options.on_error)
    return {"graphs": len(dataset), "classes": dataset.class_names}


def _read_parser() -> CommandParser:
    parser = CommandParser("Read a dataset.")
    parser.add_argument("path")
    add_columns(parser, split=True)
    return parser


def _configure(options: Namespace) -> dict[str, Any]:
    config = run_config(options)
    build_model(config, Dims(3, 2, 1))
    return {"key": config.key}


def _not_trained(configs: Sequence[Any], root: Path, **_: Any) -> list[Outcome]:
    return [Outcome(config, root / "run") for config in configs]


ALL_COMMANDS = (
    *all_commands(),
    Command("read", "read a dataset", _read_parser, _read),
    Command("configure", "read settings, and build their model", TRAIN.parser, _configure),
)
"""Those of the program, and two that do only the first steps of ``cores train``."""


@contextmanager
def small_world(scratch: Path) -> Iterator[None]:
    """No data but the cases', a cache in ``scratch``, plain text, and as little training as can be.

    Tables are made of the runs that are there, and judges are poor: damage is about reading.
    """
    for name in ("data", "cache"):
        (scratch / name).mkdir()
    world = {"CORES_DATA": str(scratch / "data"), "XDG_CACHE_HOME": str(scratch / "cache")}
    with (
        patch.dict(os.environ, {**world, "NO_COLOR": "1", "COLUMNS": "100"}),
        patch.object(cores.runs.compare, "run_all", _not_trained),
        patch.object(cores_paper.explain.cases, "run_all", _not_trained),
        patch.object(cores_paper.cli.reproduce, "_run_all"),
        patch.object(cores.training.judge, "EPOCHS", 2),
        # Takes most of the time that a command needs to begin.
        patch.object(cores.cli.settings, "_field_texts", cache(cores.cli.settings._field_texts)),
    ):
        yield


# Valid inputs

SMILES_TEXTS = ("CCO", "c1ccccc1O", "CC(=O)N", "C1CCCCC1", "[Na+].[Cl-]", "[H]OC=C", "CC", "N")
TINY = "--epochs 3 --network.hidden_dim 8 --network.num_layers 1 --out run"


def valid_cases() -> dict[str, Valid]:
    """Make what is damaged, by target: files of data, finished and interrupted runs, settings."""
    graphs, molecules, stored = _graph_files(), _molecule_files(), _stored_files()
    files = graphs | molecules | stored
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        runs = {
            name: _trained(name, files[name], f"--model {model}")
            for name, model in (
                ("graphs.jsonl", "cores-node"),
                ("table.csv", "cores-edge"),
                ("toy.zip", "sagpool"),
                ("rings.npz", "cores-both"),
            )
        }
        plain = _trained("graphs.jsonl", graphs["graphs.jsonl"], "--model gnn", epochs=1)
        sparse = _trained("graphs.jsonl", graphs["graphs.jsonl"], "--model cores-node", epochs=2)
    same_kind = {**dict.fromkeys(molecules, "table.csv"), **{name: name for name in runs}}
    ways = ("--json", "--out new.csv", "--out new.jsonl.gz", "--out new.parquet", "")
    again = f"train --resume --dataset graphs.jsonl {TINY} --model"
    resumed = [Case(plain, f"{again} gnn"), Case(sparse, f"{again} cores-node")]
    commands = [f"{again} cores-node", f"{again} cores-node --json"]
    commands += ["compare --dataset graphs.jsonl --models cores-node --out ."]
    found = {
        "data": Valid(
            [Case({name: content}, f"read {name} --json") for name, content in files.items()]
        ),
        "tu": Valid([Case(_tu_files("toy/"), "read toy --json")]),
        "predict": Valid(
            [
                Case({**runs[run], f"input-{name}": files[name]}, f"predict run input-{name} {way}")
                for name, run in same_kind.items()
                for way in ways
            ],
            "input*",
        ),
        "run": Valid(
            [
                Case(run, command)
                for name, run in runs.items()
                for command in (
                    *(f"predict run {name} {way}" for way in ways),
                    *("evaluate run", f"evaluate run --dataset {name} --json"),
                )
            ],
            "run/[cm]*",
        ),
        "metrics": Valid([Case(runs["graphs.jsonl"], each) for each in commands], "run/[cm]*.json"),
        "resume": Valid(resumed, "run/*"),
        "checkpoint": Valid(resumed, "run/checkpoint.safetensors"),
        "settings": Valid(list(_settings())),
        "rows": Valid(list(_result_rows()), "*.csv"),
    }
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for target in found.values():  # imports what a fork would otherwise import every time
            with tempfile.TemporaryDirectory() as folder, chdir(folder):
                target.cases[-1].write(Path(folder).resolve())
                assert target.cases[-1].run() == 0, target.cases[-1]
    return found


def strategies(valid: Mapping[str, Valid]) -> dict[str, st.SearchStrategy[Case]]:
    """Draw the cases of every target."""
    return {
        **{name: damage_to(cases) for name, cases in valid.items()},
        "built-graphs": _built_graphs(valid["metrics"].cases[0].files),
        "built-tables": _built_tables(),
        "built-settings": _built_settings(),
        "built-rows": _built_rows(),
    }


TARGETS = (
    *("data", "tu", "predict", "run", "metrics", "resume", "checkpoint", "settings", "rows"),
    *("built-graphs", "built-tables", "built-settings", "built-rows"),
)
"""Names of the strategies."""


def _trained(dataset: str, content: bytes, options: str, epochs: int | None = None) -> Files:
    """A run folder and its data; with epochs, of a run that was interrupted after them."""

    def until_interrupted(journal: Journal, most: int) -> Iterator[int]:
        yield from range(1, 1 + (epochs or most))
        if epochs is not None:
            raise KeyboardInterrupt

    with tempfile.TemporaryDirectory() as name, chdir(name):
        folder = Path(name).resolve()
        Case({dataset: content}, "").write(folder)
        # Without time its files are always the same, and there is a checkpoint of every epoch.
        with (
            patch("time.perf_counter", return_value=0.0),
            patch.object(Journal, "epochs", until_interrupted),
        ):
            status = Case({}, f"train --dataset {dataset} {options} {TINY}").run()
        assert status == (0 if epochs is None else 130)
        return {
            str(path.relative_to(folder)): path.read_bytes().replace(str(folder).encode(), HERE)
            for path in sorted((folder / dataset, *(folder / "run").iterdir()))
            if path.name != "lock"
        }


def _graphs() -> Iterator[dict[str, Any]]:
    for number in range(40):
        size, ring = 3 + number % 4, number % 2
        nodes = ["ab"[(place + number) % 2] for place in range(size)]
        edges = [[place, (place + 1) % size, place % 2] for place in range(size - 1 + ring)]
        label = "ring" if ring else "path"
        yield {"id": f"g{number}", "nodes": nodes, "edges": edges, "label": label}


def _graph_files() -> Files:
    tensors = [
        {
            "x": torch.ones(len(graph["nodes"]), 2),
            "edge_index": torch.tensor([edge[:2] for edge in graph["edges"]]).T.contiguous(),
            "y": torch.tensor([number % 2]),
        }
        for number, graph in enumerate(_graphs())
    ]
    return {
        "graphs.jsonl": FORMS[".jsonl"].write(list(_graphs())),
        "graphs.pt": FORMS[".pt"].write(tensors[:10]),
    }


def _molecule_files() -> Files:
    texts = [SMILES_TEXTS[number % 8] for number in range(48)]
    rows = [[f"m{at}", text, "ring" if "1" in text else "chain"] for at, text in enumerate(texts)]
    table = [["id", "smiles", "label"], *rows]
    blocks = [
        f"{Chem.MolToMolBlock(Chem.MolFromSmiles(text))}> <label>\n{label}\n\n$$$$\n"
        for _, text, label in rows[:10]
    ]
    csv = FORMS[".csv"].write(table)
    return {
        "table.csv": csv,
        "table.tsv": FORMS[".tsv"].write(table),
        "table.csv.gz": gzip.compress(csv, mtime=0),
        "table.parquet": FORMS[".parquet"].write(
            {name: [row[at] for row in rows] for at, name in enumerate(table[0])}
        ),
        "molecules.smi": "".join(f"{text} {name}\n" for name, text, _ in rows).encode(),
        "molecules.sdf": "".join(blocks).encode(),
    }


def _tu_files(folder: str = "") -> Files:
    first, lines = 1, dict[str, list[str]]()

    def add(name: str, *values: object) -> None:
        lines.setdefault(name, []).append(", ".join(map(str, values)))

    for number, graph in enumerate(_graphs(), 1):
        add("graph_labels", 5 if graph["label"] == "ring" else 1)
        for node in graph["nodes"]:
            add("graph_indicator", number)
            add("node_labels", "ab".index(node))
            add("node_attributes", number / 2, -1.0)
        for a, b, kind in graph["edges"]:
            for ends in ((a, b), (b, a)):
                add("A", first + ends[0], first + ends[1])
                add("edge_labels", kind)
        first += len(graph["nodes"])
    return {f"{folder}toy_{name}.txt": "\n".join(text).encode() for name, text in lines.items()}


def _stored_files() -> Files:
    ring = np.array([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    arrays = {
        "node_ptr": np.arange(0, 161, 4),
        "edge_ptr": np.arange(0, 321, 8),
        "x": np.linspace(0, 1, 320, dtype=np.float32).reshape(160, 2),
        "edge_index": np.tile(ring, 40),
        "edge_attr": np.ones((320, 1), dtype=np.float32),
        "y": np.arange(40) % 2,
        "node_gt": np.arange(160) % 2,
        "edge_gt": np.arange(320) % 2,
    }
    return {"toy.zip": FORMS[".zip"].write(_tu_files()), "rings.npz": FORMS[".npz"].write(arrays)}


def _settings() -> Iterator[Case]:
    for model in ("gnn", "cores-both", "diffpool"):
        config = RunConfig(dataset="MUTAG", model=model).settings
        files = {
            "settings.json": FORMS[".json"].write(config),
            "settings.toml": FORMS[".toml"].write(_without_none(config)),
        }
        for name, content in files.items():
            yield Case({name: content}, f"configure --settings {name}")


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without_none(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if value is not None
    }


def _result_rows() -> Iterator[Case]:
    wanted = "--out tables --data-root nowhere --datasets MUTAG,PTC"
    lines = {
        name: [
            line
            for line in (RESULTS / name).read_bytes().splitlines(keepends=True)
            if line.startswith((b"dataset,", b"MUTAG,", b"PTC,"))
        ]
        for name in ("runs.csv", "times.csv")
    }
    asked = {"runs.csv": "comparison-gin ablation-lambda architectures", "times.csv": "time-train"}
    for name, found in asked.items():
        for target in found.split():
            files = {name: b"".join(lines[name]), "nowhere/empty": b""}
            yield Case(files, f"reproduce {target} --rows {name} {wanted}")


# Built inputs

_NUMBERS = st.integers(-3, 12) | st.floats() | st.sampled_from(NUMBERS)
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


def _built_graphs(run: Files) -> st.SearchStrategy[Case]:
    """Lines of JSON in which the graphs have the same kind of features, and lines among them."""

    def graphs(node: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
        edge = st.tuples(st.integers(-1, 4), st.integers(0, 3), st.sampled_from((0, 0, 1, 0.5, "")))
        graph = st.fixed_dictionaries(
            {
                "nodes": st.lists(node, min_size=2, max_size=5),
                "label": st.sampled_from(("a", "b", "a", "b", 0, 1, 0.5, None)),
            },
            optional={"edges": st.lists(edge, max_size=5), "id": _JSON},
        )
        return st.lists(graph, max_size=12)

    features = (st.sampled_from("ab"), st.floats(width=32), st.tuples(_NUMBERS, _NUMBERS), _JSON)
    lines = st.lists(
        _JSON | st.fixed_dictionaries({"nodes": st.integers(-1, 2**21), "label": _JSON}), max_size=2
    )
    return st.builds(
        lambda rows, others, command: Case(
            {**run, "input.jsonl": FORMS[".jsonl"].write([*rows, *others])}, command
        ),
        st.sampled_from(features).flatmap(graphs),
        lines,
        st.sampled_from(("read input.jsonl --json", "predict run input.jsonl --on-unknown ignore")),
    )


def _built_tables() -> st.SearchStrategy[Case]:
    """Tables whose columns have names that are known, and some that are not."""
    cells = {
        SMILES: st.sampled_from(SMILES_TEXTS),
        LABEL: st.sampled_from(("a", "b", "0", "1", "nan", "")),
        ID: st.text(max_size=3),
        ("split",): st.sampled_from(("train", "val", "test", "calibration", "Train", "")),
    }

    def table(kinds: Sequence[tuple[str, ...]]) -> st.SearchStrategy[list[list[str]]]:
        row = st.tuples(*(cells[kind] for kind in kinds)).map(list)
        odd = st.lists(st.text(max_size=5), max_size=5)
        return st.builds(
            lambda header, rows, others: [header, *rows, *others],
            st.tuples(*map(st.sampled_from, kinds)).map(list),
            st.lists(row, max_size=12),
            st.lists(odd, max_size=2),
        )

    return st.builds(
        lambda rows, ending, option: Case(
            {f"table{ending}": FORMS[ending].write(rows)}, f"read table{ending} {option}"
        ),
        st.permutations(list(cells)).map(lambda kinds: kinds[:3]).flatmap(table),
        st.sampled_from((".csv", ".tsv")),
        st.sampled_from(("", "--json", "--split-column split", "--on-error fail")),
    )


def _built_settings() -> st.SearchStrategy[Case]:
    """Settings whose names are known and whose values are anything."""
    words = ("gin", "gat", "cores-node", "gnn", "mean", "node", "best", "always", "MUTAG", "paper")
    value = st.sampled_from(words) | st.booleans() | _NUMBERS | _JSON
    groups = {
        name: st.dictionaries(st.sampled_from([each.name for each in fields(kind)]), value)
        for name, kind in settings_groups().items()
        if fields(kind)
    }
    plain = {each.name: value for each in fields(RunConfig) if each.name not in groups}
    tree = st.fixed_dictionaries({}, optional={**groups, **plain})
    return st.builds(
        lambda tree: Case({"a.json": FORMS[".json"].write(tree)}, "configure --settings a.json"),
        tree,
    )


def _built_rows() -> st.SearchStrategy[Case]:
    """Rows of results in which some cells are others."""
    (case, *_) = _result_rows()
    header, *known = FORMS[".csv"].read(case.files["runs.csv"])
    assert set(header) <= set(COLUMNS)  # those of a version before have fewer
    cell = st.sampled_from(NUMBERS) | st.text(max_size=4) | st.floats(-1, 2).map(str)
    row = st.builds(
        lambda row, others: [others.get(name, old) for name, old in zip(header, row, strict=True)],
        st.sampled_from(known),
        st.dictionaries(st.sampled_from(header), cell, max_size=4),
    )
    return st.builds(
        lambda rows: Case(
            {**case.files, "runs.csv": FORMS[".csv"].write([header, *rows])}, case.command
        ),
        st.lists(row, max_size=8),
    )
