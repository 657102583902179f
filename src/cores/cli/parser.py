"""What can be asked, and how: one parser per command, the run's settings from its dataclasses."""

import re
from collections.abc import Callable, Sequence
from typing import Literal

from jsonargparse import ArgumentError, ArgumentParser, Namespace, set_parsing_settings

from cores.config import RunConfig
from cores.errors import UserError

Device = Literal["auto", "cpu", "cuda"]

SHORT: dict[str, tuple[str, type]] = {
    "epochs": ("training.epochs", int),
    "desired_ratio": ("reward.desired_ratio", float),
    "lam": ("reward.lam", float),
    "mix": ("classifier_data.mix", float),
}
"""Settings with a short option of their own, and where they belong."""


def parse(arguments: Sequence[str]) -> tuple[str, Namespace]:
    """The name of the command that was asked for, and its options."""
    set_parsing_settings(docstring_parse_attribute_docstrings=True)
    parser = ArgumentParser(
        prog="cores",
        exit_on_error=False,
        description="Graph classification from a small subgraph that the model chose itself. "
        "Try: cores train --dataset motifs --model cores-node",
    )
    from cores import __version__

    parser.add_argument("--version", action="version", version=f"cores {__version__}")
    commands = parser.add_subcommands(dest="command", metavar="COMMAND", title="commands")
    for name, (build, help_text) in _COMMANDS.items():
        commands.add_subcommand(name, build(), help=help_text)
    try:
        parsed = parser.parse_args(list(arguments))
        given = parser.parse_args(list(arguments), defaults=False)
    except ArgumentError as error:
        raise UserError(f"{_plain(str(error))}; see cores --help") from None
    options = parsed[parsed.command]
    options.given = given[given.command]
    return parsed.command, options


def _plain(message: str) -> str:
    r"""The parser's words without its inner names.

    >>> _plain('Parser key "conv":\n  Expected a typing.Literal[1, 2]. Got value: 3')
    'option "conv": expected one of [1, 2], got 3'
    >>> _plain("Expected a <class 'int'>. Got value: x")
    'expected a int, got x'
    """
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    return " ".join(message.split())


_WORDS = (
    (r"Parser key", "option"),
    (r"Expected a typing\.Literal", "expected one of "),
    (r"Expected a <class '(\w+)'>", r"expected a \1"),
    (r"\. Got value:", ", got"),
    (r"required: \w+\.", "required: "),
    (r", but it was not provided\.", ""),
)


def _parser(description: str) -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False, description=description)
    parser.add_argument(
        "--json", action="store_true", help="Print one JSON object and nothing else."
    )
    parser.add_argument(
        "--device",
        type=Device,
        default="auto",
        help="Where to compute; auto takes a GPU where there is one.",
    )
    return parser


def _data_root(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--data-root",
        type=str | None,
        default=None,
        metavar="FOLDER",
        help="Folder with tu/NAME.zip and other/NAME.npz, or PyG's layout; else CORES_DATA.",
    )


def _datasets() -> ArgumentParser:
    parser = _parser("The paper's Table 1, measured from the data.")
    parser.add_argument("names", nargs="*", help="Names or paths; without, the paper's nine.")
    _data_root(parser)
    return parser


def _train() -> ArgumentParser:
    parser = _parser(
        "Train a model into a run folder. Settings come from the preset, then --settings, then the "
        "options below, the later ones first in rank."
    )
    parser.add_argument(
        "--out",
        type=str | None,
        default=None,
        metavar="RUN",
        help="Run folder; without, runs/DATASET-MODEL-CONV-splitN-seedS.",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="Go on with an interrupted run (or start it).",
    )
    parser.add_argument(
        "--pictures",
        type=int,
        default=0,
        metavar="N",
        help="Draw what the model keeps of N test graphs, as subgraphs.png in the run folder.",
    )
    _run_settings(parser)
    return parser


def _run_settings(parser: ArgumentParser) -> None:
    _data_root(parser)
    parser.add_argument(
        "--settings",
        type=str | None,
        default=None,
        metavar="FILE",
        help="TOML file with settings, e.g. [training] learning_rate = 0.001.",
    )
    for name, (path, kind) in SHORT.items():
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, type=kind, default=None, help=f"Short for --{path}.")
    parser.add_class_arguments(RunConfig, None, sub_configs=False)


def _search() -> ArgumentParser:
    parser = _parser(
        "Search for settings: every trial is a run with settings from the published search space, "
        "judged on the selection part of its split (accuracy; for CORES the reward, by the lambda "
        "and d given here). What is not searched for comes from preset, --settings and options, as "
        "with `cores train`. The same command goes on after an interruption; more than one may "
        "work on the same --out."
    )
    parser.add_argument(
        "--out",
        type=str | None,
        default=None,
        metavar="FOLDER",
        help="Folder of the study; the best settings come to settings.toml there, for "
        "`cores train --settings`. Without, runs/search-DATASET-MODEL-CONV.",
    )
    parser.add_argument(
        "--trials", type=int, default=20, help="Proposals in all, earlier ones included."
    )
    parser.add_argument(
        "--sampler",
        type=Literal["tpe", "random"],
        default="tpe",
        help="tpe learns from what was tried; random is the paper's.",
    )
    parser.add_argument("--workers", type=int, default=1, help="Processes.")
    _run_settings(parser)
    return parser


def _evaluate() -> ArgumentParser:
    parser = _parser("Measure a saved model on its own test split, or on another dataset.")
    parser.add_argument("run", metavar="RUN", help="Run folder that `cores train` made.")
    parser.add_argument(
        "--dataset",
        type=str | None,
        default=None,
        help="Another dataset with the same features and labels; all its graphs are used.",
    )
    parser.add_argument(
        "--alpha",
        type=float,
        default=None,
        help="Error rate of the prediction sets.",
    )
    parser.add_argument(
        "--sample",
        action="store_true",
        help="Draw the subgraphs from the policy, seeded, instead of taking the likeliest ones.",
    )
    _data_root(parser)
    return parser


def _reproduce() -> ArgumentParser:
    parser = _parser(
        "Make a table or figure of the paper, ours beside theirs: printed, and written to "
        "FOLDER/TARGET.md and .tex, or .png and .svg. Finished runs are not repeated: the same "
        "command goes on after an interruption."
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="datasets (Table 1), architectures (Table 2), comparison-gin, comparison-gcn or "
        "comparison-gat (tables of models by datasets), ablation-d or ablation-lambda (figures 3 "
        "and 4), sparsity-reward (figure 2), pipeline and mutag (figures 1 and 5), time-train or "
        "time-inference (seconds of every model beside the plain GNN's), or all.",
    )
    parser.add_argument(
        "--datasets",
        type=str | None,
        default=None,
        help="Names with commas; without, all nine.",
    )
    parser.add_argument(
        "--models",
        type=str | None,
        default=None,
        help="Names with commas; without, the target's own.",
    )
    parser.add_argument("--splits", type=str, default="1-5", help="For example 1-5 or 1,3.")
    parser.add_argument("--seeds", type=str, default="0", help="For example 0 or 0-2.")
    parser.add_argument(
        "--preset",
        type=Literal["default", "paper"],
        default="default",
        help="Settings of the runs: one for all datasets, or the published ones.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="Two splits and 20 epochs, as a trial."
    )
    parser.add_argument("--workers", type=int, default=1, help="Processes on this machine.")
    parser.add_argument(
        "--scheduler",
        type=str | None,
        default=None,
        metavar="ADDRESS",
        help="Run on the workers of a dask scheduler, e.g. tcp://head:8786, instead of processes "
        "here. They need this package, one thread each (dask worker --nthreads 1), and --out and "
        "the data under the same paths.",
    )
    parser.add_argument(
        "--out",
        type=str,
        default="runs/reproduce",
        metavar="FOLDER",
        help="Folder of run folders, tables and figures.",
    )
    parser.add_argument(
        "--rows",
        type=str | None,
        default=None,
        metavar="CSV",
        help="File that collects a row per finished run (without, FOLDER/TARGET.csv); a run that "
        "has a row there is not repeated.",
    )
    _data_root(parser)
    return parser


def _benchmark() -> ArgumentParser:
    parser = _parser("Measure the speed ratios, in one process with one thread.")
    parser.add_argument("--repeats", type=int, default=15, help="Interleaved repeats of each.")
    return parser


_COMMANDS: dict[str, tuple[Callable[[], ArgumentParser], str]] = {
    "datasets": (_datasets, "the paper's Table 1, measured"),
    "train": (_train, "train a model"),
    "evaluate": (_evaluate, "measure a trained model"),
    "search": (_search, "search for good settings"),
    "reproduce": (_reproduce, "a table of the paper, ours beside theirs"),
    "benchmark": (_benchmark, "speed ratios"),
}
