"""The model card: what a folder holds, for the person who finds it. ``README.md`` of a run."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cores import __version__
from cores.config import RunConfig
from cores.config.models import conv_spec
from cores.config.spec import TaskName
from cores.data.molecules import ATOM_COLUMNS
from cores.files import escape, write_atomically
from cores.runs.fit import PreparedData
from cores.runs.folder import CARD
from cores.runs.rows import shown_metrics
from cores.tasks import TASKS
from cores.verdict import promise_sentence

MARK = "<!-- model card, written by cores -->"
"""First line of a card; a README.md without it is the user's, and stays."""
_MEASURED, _PROMISES = "## What was measured", "## What the numbers promise"
MOST_NAMES = 20
"""Classes and columns that a card lists; data may have thousands."""
_LENGTH = 80
"""Of a name that comes from data."""
PARTS = ("train", "policy", "selection", "calibration", "test")


@dataclass(frozen=True)
class DataFacts:
    """What a card says of the data."""

    name: str
    """Of the dataset, or of the file it was read from, without directories."""
    class_counts: Mapping[str, int]
    """Graphs of each class; of several labels, those of which each is known."""
    feature_names: Sequence[str]
    edge_feature_names: Sequence[str]
    parts: Mapping[str, int]
    """Number of graphs by role."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """How many labels there are, or how they are spread."""
    counted: str = "class"
    """What ``class_counts`` are of."""

    @classmethod
    def of(cls, data: PreparedData) -> "DataFacts":
        """The facts of a dataset that was divided."""
        dataset = data.dataset
        task, y = TASKS[dataset.task], dataset.graphs.y
        return cls(
            Path(dataset.name).name,
            task.class_counts(y, dataset.class_names),
            dataset.feature_names,
            dataset.edge_feature_names,
            {part: len(getattr(data.split, part)) for part in PARTS},
            task.label_facts(y, dataset.class_names),
            task.counted,
        )


def write_card(out: Path, text: str) -> None:
    """Write the card of a folder, unless there is a README.md of the user's."""
    path = out / CARD
    if not path.exists() or read_card(out):
        write_atomically(path, text.encode())


def read_card(out: Path) -> str | None:
    """The card of a folder; None where there is none, or a README.md of the user's."""
    try:
        text = (out / CARD).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return text if text.startswith(MARK) else None


def model_card(
    config: RunConfig,
    metrics: Mapping[str, Any],
    data: DataFacts | None,
    task: TaskName = "classification",
    *,
    names_data: bool = False,
) -> str:
    """The card of a trained model as Markdown; without the data's facts where nobody knows them.

    ``names_data`` says whether the folder tells where its data are.
    """
    known = "" if data is None else f" on {escaped(data.name)}"
    sections = [
        MARK,
        f"# {escaped(config.spec.title)}{known}",
        escape.markdown(description(config, task)),
        _MEASURED,
        _measured_section(metrics),
        *([] if data is None else ["## Data", *_data(data, config)]),
        "## How to use it",
        _use(data, names_data),
        _PROMISES,
        _promises(config, metrics, _calibrated(config, metrics, data), task),
        "## How it was made",
        _table(("setting", "value", "default"), _settings(config)),
        _table(("made with", "version"), _versions()),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def measured_again(
    card: str | None,
    config: RunConfig,
    metrics: Mapping[str, Any],
    task: TaskName = "classification",
) -> str:
    """A card with other metrics of the same model; what it says of the data stays.

    Where there is no card, one without the data's facts.
    """
    if card is None:
        return model_card(config, metrics, None, task)
    calibrated = _NO_CALIBRATION not in card
    sections = {
        _MEASURED: _measured_section(metrics),
        _PROMISES: _promises(config, metrics, calibrated, task),
    }
    for title, text in sections.items():
        before, found, after = card.partition(f"\n\n{title}\n\n")
        if found:
            rest = after.partition("\n\n## ")[2]  # a name from data cannot begin a section
            card = f"{before}{found}{text}\n\n## {rest}"
    return card


def without_data(card: str) -> str:
    """A card for a folder that does not say where its data are."""
    return card.replace(_AGAIN, "")


def escaped(text: object) -> str:
    r"""Text from data, on one line and with nothing in it that Markdown or HTML would read.

    >>> print(escaped("a|b*c`<i>\n# d"))
    a\|b\*c\`\<i\> # d
    """
    plain = str(text)
    return escape.markdown(plain if len(plain) <= _LENGTH else plain[: _LENGTH - 1] + "…")


_USE = """From Python, on {kind}:

```python
from cores import Cores

model = Cores.load("FOLDER")
model.predict({name})
```

From the command line: `cores predict FOLDER INPUT` for new {new}, \
`cores evaluate FOLDER --dataset INPUT` to measure it on labelled ones{again}."""
_AGAIN = ", `cores evaluate FOLDER` to measure it again"
"""Only for a folder that says where its data are."""


def _use(data: DataFacts | None, names_data: bool) -> str:
    kind, name, new = "PyG or networkx graphs with the same features", "graphs", "graphs"
    if data is not None and tuple(data.feature_names) == ATOM_COLUMNS:
        kind, name, new = "SMILES", "smiles", "molecules"
    return _USE.format(kind=kind, name=name, new=new, again=_AGAIN if names_data else "")


def description(config: RunConfig, task: TaskName = "classification") -> str:
    """What a model is, in a sentence."""
    kind = TASKS[task].kind
    removes = {"node": "nodes", "edge": "edges", "both": "nodes and edges"}
    layers = f" ({conv_spec(config.conv).title} layers)" if config.spec.uses_conv else ""
    if config.spec.removes is None:
        return f"A {kind}{layers} that sees full graphs."
    removed = removes[config.spec.removes]
    if config.spec.has_policy:
        return (
            f"A {kind}{layers} that removes {removed} and decides from the subgraph that is left."
        )
    return f"A {kind}{layers} that leaves out a part of the {removed}."


def _measured_section(metrics: Mapping[str, Any]) -> str:
    """The verdicts, and the metrics as a table."""
    verdicts = "\n".join(f"- {line}" for line in metrics.get("verdicts", ()))
    rows = [(name, escaped(value), meaning) for name, value, meaning in shown_metrics(metrics)]
    table = _table(("metric", "value", "meaning"), rows)
    return "\n\n".join(part for part in (verdicts, table) if part)


def _data(data: DataFacts, config: RunConfig) -> list[str]:
    edges = "none"
    if data.edge_feature_names:
        used = "used" if config.network.edge_features else "not used"
        edges = f"{len(data.edge_feature_names)}, {used}: {_listed(data.edge_feature_names)}"
    counts = list(data.class_counts.items())
    classes = [(escaped(name), str(count)) for name, count in counts[:MOST_NAMES]]
    if len(counts) > MOST_NAMES:
        rest = sum(count for _, count in counts[MOST_NAMES:])
        classes.append((f"{len(counts) - MOST_NAMES} more", str(rest)))
    features = data.feature_names
    facts = [
        *data.labels.items(),
        ("node features", f"{len(features)}: {_listed(features)}" if features else "none"),
        ("edge features", edges),
        *((f"{name} part", f"{count} graphs") for name, count in data.parts.items()),
    ]
    by_class = [_table((data.counted, "graphs"), classes)] if classes else []
    return [_table(("data", ""), facts), *by_class]


def _listed(names: Sequence[str]) -> str:
    more = ", …" if len(names) > MOST_NAMES else ""
    return ", ".join(map(escaped, names[:MOST_NAMES])) + more


def _calibrated(config: RunConfig, metrics: Mapping[str, Any], data: DataFacts | None) -> bool:
    """Whether there was a calibration part: a split column may give one, whatever the settings."""
    if data is not None:
        return data.parts.get("calibration", 0) > 0
    if "coverage" in metrics:
        return metrics["coverage"] is not None
    return config.parts.calibration > 0


_NO_CALIBRATION = "There was no calibration part, so there are no prediction "


def _promises(
    config: RunConfig, metrics: Mapping[str, Any], calibrated: bool, task: TaskName
) -> str:
    """What is promised of the dial's setting, of prediction sets, and what is not."""
    promise = metrics.get("promise")
    said = [] if promise is None else [promise_sentence(promise)]
    row = TASKS[task]
    judged = metrics.get(f"judge_{row.plain.metric}")
    return "\n\n".join([*said, _limits(config, calibrated, judged, *row.set_word)])


def _limits(
    config: RunConfig, calibrated: bool, judged: float | None, known: str, missed: str
) -> str:
    sets = (
        f"A prediction {known} misses the true {missed} at most a share alpha of the time, on "
        "average over draws of calibration and new graphs, if the new graphs are like those of the "
        "calibration part. It does not hold for each graph, nor for graphs from elsewhere."
    )
    if not calibrated:
        sets = f"{_NO_CALIBRATION}{known}s."
    faithful = " The prediction depends on nothing but the kept subgraph."
    judge = (
        " That a subgraph was kept does not make it the reason for the label: the judge, a "
        "classifier that never saw this model, shows whether others can read it, and its accuracy "
        "on random subgraphs what choosing added."
    )
    if judged is None:
        judge = " No judge has checked whether the kept subgraph can be read as a reason."
    if not config.spec.has_policy:
        faithful = ""
    if config.spec.removes is None:
        judge = ""
    licence = (
        " The program is under the MIT licence. Whether the weights may be passed on is decided by "
        "the licence of the data."
    )
    return sets + faithful + judge + licence


def _settings(config: RunConfig) -> list[tuple[str, str, str]]:
    """The settings that differ from the defaults, and those that every run has."""
    defaults = config.defaults
    always = [
        (name, escaped(getattr(config, name)), escaped(defaults[name]))
        for name in ("model", "conv", "preset", "split", "seed")
    ]
    changed = [
        (f"{group}.{name}", escaped(value), escaped(defaults[group][name]))
        for group, values in config.changes.items()
        if isinstance(values, Mapping)
        for name, value in values.items()
    ]
    if config.alpha != defaults["alpha"]:
        always.append(("alpha", f"{config.alpha:g}", f"{defaults['alpha']:g}"))
    return always + changed


def _versions() -> list[tuple[str, str]]:
    def installed(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "unknown"

    return [
        ("cores", __version__),
        ("torch", installed("torch")),
        ("torch-geometric", installed("torch-geometric")),
        ("Python", platform.python_version()),
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; its cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
