"""The model card: what a folder holds, for the person who finds it. ``README.md`` of a run."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cores import __version__
from cores.config import RunConfig
from cores.config.models import conv_spec
from cores.config.spec import TaskName
from cores.data.dataset import Dataset
from cores.data.molecules import ATOM_COLUMNS
from cores.data.splits import Split
from cores.files import escape, write_atomically
from cores.runs.folder import CARD
from cores.runs.rows import shown_metrics
from cores.runs.trained import DataSchema
from cores.tasks import TASKS
from cores.verdict import promise_sentence

MARK = "<!-- model card, written by cores -->"
"""First line of a card; a README.md without it is the user's, and stays."""
MOST_NAMES = 20
"""Classes and columns that a card lists; data may have thousands."""
_LENGTH = 80
"""Characters of a name that comes from data."""
PARTS = ("train", "policy", "selection", "calibration", "test")


@dataclass(frozen=True)
class DataFacts:
    """Facts of the data that the schema of a model does not have; ``config.json`` keeps them."""

    name: str
    """Name of the dataset, or of the file it was read from, without directories."""
    class_counts: Sequence[int]
    """Graphs of each class; of several labels, those of which each is known."""
    parts: Mapping[str, int]
    """Number of graphs by role."""
    labels: Mapping[str, str]
    """Number of labels, or their spread."""

    @classmethod
    def of(cls, dataset: Dataset, split: Split) -> "DataFacts":
        """Count a dataset that was divided."""
        task, y, names = TASKS[dataset.task], dataset.graphs.y, dataset.class_names
        return cls(
            Path(dataset.name).name,
            list(task.class_counts(y, names).values()),
            {part: len(getattr(split, part)) for part in PARTS},
            task.label_facts(y, names),
        )

    @classmethod
    def read(cls, known: Any) -> "DataFacts | None":
        """The facts of plain data; None where these are none."""
        try:
            return cls(
                str(known["name"]),
                [int(count) for count in known["class_counts"]],
                {str(name): int(count) for name, count in known["parts"].items()},
                {str(name): str(value) for name, value in known["labels"].items()},
            )
        except (AttributeError, LookupError, TypeError, ValueError):
            return None

    @property
    def plain(self) -> dict[str, Any]:
        """The facts as plain data."""
        return asdict(self)


def write_card(out: Path, text: str) -> None:
    """Write the card of a folder, unless there is a README.md of the user's."""
    path = out / CARD
    try:
        ours = not path.exists() or path.read_text(encoding="utf-8").startswith(MARK)
    except (OSError, UnicodeDecodeError):
        ours = False
    if ours:
        write_atomically(path, text.encode())


def model_card(
    config: RunConfig,
    schema: DataSchema,
    metrics: Mapping[str, Any],
    facts: DataFacts | None,
    *,
    names_data: bool = False,
) -> str:
    """Write the card of a trained model as Markdown.

    Args:
        config: The settings of its run.
        schema: The names of its data.
        metrics: What was measured.
        facts: What else is known of the data; None where nobody knows.
        names_data: Whether the folder tells where its data are.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    promise, task = metrics.get("promise"), TASKS[schema.task]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=False,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else escape.markdown(value),
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["short"] = lambda value: Markup(escaped(value))
    return environment.get_template("card.md.j2").render(
        mark=Markup(MARK),
        config=config,
        schema=schema,
        facts=facts,
        description=description(config, schema.task),
        verdicts=metrics.get("verdicts", ()),
        metrics=shown_metrics(metrics),
        classes=[]
        if facts is None
        else list(zip(schema.class_names, facts.class_counts, strict=False)),
        most_names=MOST_NAMES,
        listed=_listed,
        molecules=schema.feature_names == ATOM_COLUMNS,
        promise=None if promise is None else Markup(promise_sentence(promise)),
        calibrated=_calibrated(config, metrics, facts),
        counted=task.counted,
        set_word=task.set_word,
        numbers=not task.has_sets,
        judged=metrics.get(f"judge_{task.plain.metric}") is not None,
        names_data=names_data,
        settings=_settings(config),
        versions=_versions(),
    )


def escaped(text: object) -> str:
    r"""Text from data, on one line and with nothing in it that Markdown or HTML would read.

    >>> print(escaped("a|b*c`<i>\n# d"))
    a\|b\*c\`\<i\> # d
    """
    plain = str(text)
    return escape.markdown(plain if len(plain) <= _LENGTH else plain[: _LENGTH - 1] + "…")


def description(config: RunConfig, task: TaskName = "classification") -> str:
    """Describe a model in a sentence."""
    kind = TASKS[task].kind
    removes = {"node": "nodes", "edge": "edges", "both": "nodes and edges"}
    layers = f" ({conv_spec(config.conv).title} layers)" if config.spec.uses_conv else ""
    if config.spec.removes is None:
        return f"A {kind}{layers} that sees full graphs."
    removed = removes[config.spec.removes]
    if config.spec.has_policy and config.explanation.class_from == "part":
        return (
            f"A {kind}{layers} that removes {removed} and decides from the subgraph that is left."
        )
    if config.spec.has_policy:
        members = config.committee.members
        who = f"A committee of {members} {kind}s" if members > 1 else f"A {kind}"
        return (
            f"{who}{layers} that sees full graphs. With each prediction it shows a part of the "
            f"graph from which it would predict the same: a search removes the {removed} that it "
            "does not need, in an order that a policy proposes."
        )
    return f"A {kind}{layers} that leaves out a part of the {removed}."


def _listed(names: Sequence[str], used: str = "") -> Any:
    """The number of columns, and the names of the first."""
    from markupsafe import Markup

    more = ", …" if len(names) > MOST_NAMES else ""
    listed = ", ".join(map(escaped, names[:MOST_NAMES])) + more
    number = f"{len(names)}, {used}" if used else f"{len(names)}"
    return Markup(f"{number}: {listed}" if names else "none")


def _calibrated(config: RunConfig, metrics: Mapping[str, Any], facts: DataFacts | None) -> bool:
    """Tell whether there was a calibration part: a split column may give one, too."""
    if facts is not None:
        return facts.parts.get("calibration", 0) > 0
    if "coverage" in metrics:
        return metrics["coverage"] is not None
    return config.parts.calibration > 0


def _settings(config: RunConfig) -> list[tuple[str, Any, Any]]:
    """The settings that differ from the defaults, and those that every run has."""
    defaults = config.defaults
    names = ["model", "conv", "preset", "split", "seed"]
    names += ["alpha"] if config.alpha != defaults["alpha"] else []
    always = [(name, getattr(config, name), defaults[name]) for name in names]
    return always + [
        (f"{group}.{name}", value, defaults[group][name])
        for group, values in config.changes.items()
        if isinstance(values, Mapping)
        for name, value in values.items()
    ]


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
