"""What ``make fuzz`` damages: inputs that the program made or reads, and a command for each.

Beside them there are inputs that were never valid: hypothesis builds graphs, tables, settings and
rows from the names that their readers know.
"""

import gzip
import io
import os
import shlex
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import hypothesis
import numpy as np
import torch
from hypothesis import strategies as st
from rdkit import Chem

import cores.cli.settings
import cores.runs.series
import cores.training.judge
import cores_paper.cli.reproduce
from cores import cli
from cores.cli.command import Command, CommandParser
from cores.cli.commands import all_commands
from cores.cli.inputs import add_columns, column_names
from cores.cli.settings import run_config, settings_groups
from cores.cli.train import TRAIN
from cores.config import RunConfig
from cores.data.dataset import Dims
from cores.data.datasets import load_dataset
from cores.data.inputs.columns import ID, LABEL, SMILES
from cores.models.build import build_model
from cores.runs.rows import COLUMNS
from cores.runs.runner import Outcome
from cores.training.journal import Journal
from fuzz_damage import FORMS, NUMBERS, damaged

RESULTS = Path(__file__).resolve().parents[1] / "results"
HERE = b"/the/folder/of/the/case"
"""Stands for the folder of a case in its files."""
BATCH = 50
"""Cases that hypothesis is asked for at once."""
SMALL = 2**16
"""Bytes of a dataset that is worth damaging: larger ones only take longer."""
Files = dict[str, bytes]


@dataclass(frozen=True)
class Case:
    """Files in a folder, and the command that reads them there."""

    files: Files
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


@dataclass(frozen=True)
class Damaged:
    """Valid cases, of which one file is damaged."""

    cases: Sequence[Case]
    which: str = "*"
    """Files that may be."""

    def case(self, seed: str, number: int) -> Case:
        """A case; always the same for a seed and a number."""
        random = Random(f"{seed}-{number}")
        case = random.choice(self.cases)
        files = dict(case.files)
        others = [content for each in self.cases for content in each.files.values()]
        name = random.choice([name for name in files if fnmatch(name, self.which)])
        match random.choice(("damage",) * 18 + ("drop", "swap")):
            case "drop":
                del files[name]
            case "swap":
                files[name] = random.choice(others)
            case _:
                files[name] = damaged(name, files[name], others, random)
        return Case(files, case.command)


@dataclass(frozen=True)
class Built:
    """Cases that hypothesis builds."""

    cases: st.SearchStrategy[Case]

    def case(self, seed: str, number: int) -> Case:
        """A case; always the same for a seed and a number."""
        return _examples(self.cases, f"{seed}-{number // BATCH}")[number % BATCH]


@cache
def _examples(strategy: st.SearchStrategy[Case], seed: str) -> list[Case]:
    found: list[Case] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=BATCH,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found + [found[-1]] * (BATCH - len(found))


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
        patch.object(cores.runs.series, "run_all", _not_trained),
        patch.object(cores_paper.cli.reproduce, "_run_all"),
        patch.object(cores.training.judge, "EPOCHS", 2),
        # Takes most of the time that a command needs to begin.
        patch.object(cores.cli.settings, "_field_texts", cache(cores.cli.settings._field_texts)),
    ):
        yield


# Valid inputs

SMILES_TEXTS = ("CCO", "c1ccccc1O", "CC(=O)N", "C1CCCCC1", "[Na+].[Cl-]", "[H]OC=C", "CC", "N")
TINY = "--epochs 3 --network.hidden_dim 8 --network.num_layers 1 --out run"


def targets(data: Path | None = None) -> dict[str, Damaged | Built]:
    """Everything that is damaged, by name; with a folder of datasets, its small ones, too."""
    graphs, molecules, stored = _graph_files(), _molecule_files(), dict(_stored_files(data))
    everything = graphs | molecules | stored
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        runs = {
            name: _trained(name, everything[name], f"--model {model}")
            for name, model in (
                ("graphs.jsonl", "cores-node"),
                ("table.csv", "cores-edge"),
                ("toy.zip", "sagpool"),
                ("rings.npz", "cores-both"),
            )
        }
        plain = _trained("graphs.jsonl", graphs["graphs.jsonl"], "--model gnn", epochs=1)
        sparse = _trained("graphs.jsonl", graphs["graphs.jsonl"], "--model cores-node", epochs=2)
        damaged = _damaged(graphs, molecules, stored, runs, plain, sparse)
        for target in damaged.values():  # imports what a fork would otherwise import every time
            _accepted(target.cases[-1])
    return {
        **damaged,
        "built-graphs": Built(_built_graphs(runs["graphs.jsonl"])),
        "built-tables": Built(_built_tables()),
        "built-settings": Built(_built_settings()),
        "built-rows": Built(_built_rows()),
    }


def _damaged(
    graphs: Files,
    molecules: Files,
    stored: Files,
    runs: Mapping[str, Files],
    plain: Files,
    sparse: Files,
) -> dict[str, Damaged]:
    """Targets by name: files of graphs and molecules, finished runs, and two interrupted ones."""
    ways = ("--json", "--out new.csv", "--out new.jsonl.gz", "--out new.parquet", "")
    again = f"train --resume --dataset graphs.jsonl {TINY}"
    resumed = [Case(plain, f"{again} --model gnn"), Case(sparse, f"{again} --model cores-node")]
    finished = runs["graphs.jsonl"]
    same_kind = {**dict.fromkeys(molecules, "table.csv"), **{name: name for name in runs}}
    predicted = {name: (graphs | molecules | stored)[name] for name in same_kind}
    return {
        "tu": Damaged([*_reading(stored, ".zip"), Case(_tu_files("toy/"), "read toy --json")]),
        "npz": Damaged(_reading(stored, ".npz")),
        "graphs": Damaged(_reading(graphs)),
        "molecules": Damaged(_reading(molecules)),
        "predict": Damaged(
            [
                Case(
                    {**runs[run], f"input-{name}": predicted[name]},
                    f"predict run input-{name} {way}",
                )
                for name, run in same_kind.items()
                for way in ways
            ],
            "input*",
        ),
        "run": Damaged(
            [
                *(
                    Case(files, f"predict run {name} {way}")
                    for name, files in runs.items()
                    for way in ways
                ),
                *(Case(files, "evaluate run") for name, files in runs.items()),
                *(
                    Case(files, f"evaluate run --dataset {name} --json")
                    for name, files in runs.items()
                ),
            ],
            "run/[cm]*",
        ),
        "metrics": Damaged(
            [
                Case(finished, f"{again} --model cores-node"),
                Case(finished, f"{again} --model cores-node --json"),
                Case(finished, "compare --dataset graphs.jsonl --models cores-node --out ."),
            ],
            "run/[cm]*.json",
        ),
        "resume": Damaged(resumed, "run/*"),
        "checkpoint": Damaged(resumed, "run/checkpoint.safetensors"),
        "settings": Damaged(list(_settings())),
        "rows": Damaged(list(_result_rows()), "*.csv"),
    }


def _accepted(case: Case) -> None:
    """Run a valid case here."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        case.write(Path(folder).resolve())
        assert case.run() == 0, case.command


def _reading(files: Files, ending: str = "") -> list[Case]:
    return [
        Case({name: content}, f"read {name} --json")
        for name, content in files.items()
        if name.endswith(ending)
    ]


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


def _stored_files(data: Path | None) -> Iterator[tuple[str, bytes]]:
    """Files that are read at once, and small ones of the user's."""
    yield "toy.zip", FORMS[".zip"].write(_tu_files())
    nodes, edges = np.arange(0, 161, 4), np.arange(0, 321, 8)
    ring = np.array([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    yield (
        "rings.npz",
        FORMS[".npz"].write(
            {
                "node_ptr": nodes,
                "edge_ptr": edges,
                "x": np.linspace(0, 1, 320, dtype=np.float32).reshape(160, 2),
                "edge_index": np.tile(ring, 40),
                "edge_attr": np.ones((320, 1), dtype=np.float32),
                "y": np.arange(40) % 2,
                "node_gt": np.arange(160) % 2,
                "edge_gt": np.arange(320) % 2,
            }
        ),
    )
    for path in sorted(data.glob("*/*")) if data is not None else ():
        dataset = path.suffix in (".zip", ".npz") and not path.stem.endswith("_gt")
        if dataset and path.stat().st_size < SMALL:
            yield f"{path.parent.name}-{path.name}", path.read_bytes()


def _settings() -> Iterator[Case]:
    for model in ("gnn", "cores-both", "diffpool"):
        config = RunConfig(dataset="MUTAG", model=model).settings
        files = {
            "settings.json": FORMS[".json"].write(config),
            "settings.toml": FORMS[".toml"].write(_without_none(config)),
        }
        for name, content in files.items():
            yield Case({name: content}, f"configure --settings {name}")
    network = {"hidden_dim": 8, "num_layers": 2}
    yield Case({"group.toml": FORMS[".toml"].write(network)}, "configure --network group.toml")


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
