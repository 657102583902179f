"""The commands of this package, in the order of the help; others are added by the caller."""

from cores.cli.benchmark import BENCHMARK
from cores.cli.compare import COMPARE
from cores.cli.compare_explanations import COMPARE_EXPLANATIONS
from cores.cli.curve import CURVE
from cores.cli.datasets import LIST_DATASETS
from cores.cli.equal_risk import EQUAL_RISK
from cores.cli.evaluate import EVALUATE
from cores.cli.explain import EXPLAIN
from cores.cli.export import EXPORT
from cores.cli.plot import PLOT
from cores.cli.predict import PREDICT
from cores.cli.search import SEARCH
from cores.cli.serve import SERVE
from cores.cli.train import TRAIN
from cores.cli.tune import TUNE

COMMANDS = (
    *(LIST_DATASETS, TRAIN, PREDICT, EXPLAIN, SERVE, EVALUATE, CURVE, TUNE, PLOT, EXPORT),
    *(COMPARE, COMPARE_EXPLANATIONS, EQUAL_RISK, SEARCH, BENCHMARK),
)
