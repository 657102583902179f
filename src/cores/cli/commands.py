"""The commands, in the order of the help."""

from importlib import import_module

from cores.cli.command import Command
from cores.cli.compare import COMPARE
from cores.cli.curve import CURVE
from cores.cli.datasets import LIST_DATASETS
from cores.cli.explain import EXPLAIN
from cores.cli.predict import PREDICT
from cores.cli.saved import EVALUATE, EXPORT, PLOT, SERVE
from cores.cli.train import TRAIN
from cores.cli.tune import TUNE
from cores.config.registration import COMMANDS as REGISTERED
from cores.plugins import load_plugins

COMMANDS = (
    *(LIST_DATASETS, TRAIN, PREDICT, EXPLAIN, SERVE, EVALUATE, CURVE, TUNE, PLOT, EXPORT),
    COMPARE,
)


def all_commands() -> tuple[Command, ...]:
    """Return the commands of this package, then those that were registered."""
    load_plugins()
    return (*COMMANDS, *map(_imported, REGISTERED))


def _imported(command: Command | str) -> Command:
    if isinstance(command, Command):
        return command
    module, _, name = command.partition(":")
    found: Command = getattr(import_module(module), name)
    return found
