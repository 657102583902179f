"""Options that commands share which compare runs on one dataset, and the runs that fail."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

from cores.cli.command import CommandParser, add_data_root, add_import
from cores.cli.inputs import add_columns, own_file
from cores.cli.settings import BRIEF, settings_file
from cores.cli.values import check_workers, named_path, numbers
from cores.config import merged
from cores.config.models import CONVS, conv_spec
from cores.config.run import AskedTask
from cores.config.spec import TaskName
from cores.data.catalogue import canonical_name
from cores.errors import failed


def add_comparison(parser: CommandParser, folder: str) -> None:
    """Add the options for many runs on one dataset, by default in ``runs/FOLDER-DATASET``."""
    parser.add_argument(
        "--dataset",
        required=True,
        metavar="NAME",
        help=f"{BRIEF['dataset']}.",
    )
    parser.add_argument(
        "--conv",
        default="gin",
        metavar="NAME",
        help=f"Message-passing layer: {', '.join(CONVS)} (default: gin).",
    )
    parser.add_argument(
        "--splits",
        default="1-3",
        metavar="NUMBERS",
        help="For example 1-5 or 1,3 (default: 1-3).",
    )
    parser.add_argument(
        "--epochs",
        type=int,
        metavar="N",
        help="Most epochs (default: 330 for cores-*, else 240; fewer for large files).",
    )
    parser.add_argument(
        "--settings",
        type=named_path,
        metavar="FILE",
        help="Settings of all models from a TOML or JSON file.",
    )
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="Processes (default: 1)."
    )
    parser.add_argument(
        "--out",
        type=named_path,
        metavar="FOLDER",
        help=f"Folder of the run folders (default: runs/{folder}-DATASET).",
    )
    add_columns(parser, split=True)
    add_data_root(parser)
    add_import(parser)


@dataclass(frozen=True)
class Comparison:
    """A comparison that was asked for, checked before the first run."""

    dataset: str
    out: Path
    task: TaskName
    """That of the data."""
    options: dict[str, Any]
    """As the library takes them."""

    @classmethod
    def of(
        cls, options: Namespace, folder: str = "compare", *, any_task: bool = False
    ) -> "Comparison":
        """Check the options; what is wrong with all runs is told once.

        With ``any_task``, the data may have more than classes.
        """
        from cores.data.dataset import need_classes
        from cores.data.datasets import load_dataset
        from cores.runs.device import choose_device

        check_workers(options.workers)
        conv_spec(options.conv)
        splits = numbers(options.splits, "--splits", first=1)
        settings = {} if options.settings is None else settings_file(options.settings)
        if options.epochs is not None:
            settings = merged(settings, {"training": {"epochs": options.epochs}})
        if getattr(options, "task", None) is not None:
            settings = merged(settings, {"task": options.task})
        dataset = canonical_name(options.dataset)
        choose_device(options.device)
        asked = settings.get("task")  # an unknown one is refused by the runs
        task = cast(AskedTask, asked) if asked in get_args(AskedTask) else "auto"
        own = own_file(dataset, options, task)
        data = load_dataset(dataset, options.data_root, task=task) if own is None else own.dataset
        if not any_task:
            need_classes(data, "a comparison")
        if own is not None:
            settings = merged(own.settings, settings)
            own.note_unusable()
        named = {
            "conv": options.conv,
            "splits": splits,
            "settings": settings,
            "workers": options.workers,
            "device": options.device,
            "data_root": options.data_root,
            "columns": None if own is None else own.named,
        }
        out = Path(options.out or f"runs/{folder}-{Path(dataset).stem}")
        return cls(dataset, out, data.task, named)


@dataclass(frozen=True)
class Failures:
    """The runs that failed while the rest went on."""

    found: dict[Path, str] = field(default_factory=dict)

    def noted(self, advance: Callable[[str, str | None], None]) -> Callable[[Any], None]:
        """Return what to call with every run as it ends."""

        def done(outcome: Any) -> None:
            if outcome.failure is not None:
                self.found[outcome.folder] = outcome.failure
            advance(outcome.folder.name, outcome.failure)

        return done

    def check(self) -> None:
        """Raise what tells of them, if there are any."""
        from cores.runs.runner import has_fault

        if self.found:
            folder, reason = next(iter(self.found.items()))
            raise failed(
                f"{len(self.found)} runs failed, the first {folder.name}: {reason}",
                ours=any(has_fault(path) for path in self.found),
            )
