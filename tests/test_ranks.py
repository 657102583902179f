"""Processes that train one model together: the same as one process, whatever the shares."""

import json
import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed import TCPStore
from torch.optim import Adam

from cores import ranks
from cores.__main__ import main
from cores.config import RunConfig
from cores.data.dataset import Dataset
from cores.data.datasets import load_dataset
from cores.errors import UserError
from cores.evaluation.predictions import predict_proba
from cores.models.encoder import NodeNorm
from cores.runs.fit import PreparedData, fit_model, training_graphs
from cores.runs.run import train_run
from cores.training import judge, optimizer
from cores.training.journal import Journal
from cores.training.state import load_state, save_state

CPU = torch.device("cpu")


def launched(rank: int, size: int, port: int) -> dict[str, str]:
    """What torchrun tells a process."""
    return {
        "TORCHELASTIC_RUN_ID": "test",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def rank() -> int:
    group = ranks.current()
    assert group is not None
    return group.rank


def in_ranks(size: int, action: Callable[[], object], meet: bool = True) -> None:
    """Do something in so many copies of this process, which train together; all must succeed.

    A copy has imported everything already: that takes most of the time of a new process. Where
    they do not meet at the end, one may end before the others.
    """

    def together() -> int:
        with ranks.joined(CPU):
            action()
            if not meet:
                os._exit(0)
        return 0

    assert statuses(size, together) == [0] * size


def statuses(size: int, action: Callable[[], int]) -> list[int]:
    """Does something in so many copies of this process; returns what each of them ended with."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # torchrun has one
    children = []
    for number in range(size):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads; the copy needs none
            child = os.fork()
        if child == 0:
            status = 1
            try:
                os.environ.update(launched(number, size, store.port))
                status = action()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def settings(model: str, **changes: Any) -> RunConfig:
    tiny = {
        "dataset": "motifs",
        "model": model,
        "network": {"hidden_dim": 8, "num_layers": 2},
        "training": {"epochs": 4, "batch_size": 16, "learning_rate": 0.01},
        "ppo": {"batch_size": 16, "samples": 4, "env_steps": 20},
    }
    return RunConfig.from_settings(
        {
            name: tiny.get(name, {}) | value if isinstance(value, dict) else value
            for name, value in (tiny | changes).items()
        }
    )


@pytest.fixture(scope="session")
def motifs() -> Dataset:
    """Sixty graphs in double precision, whose nodes are not all alike."""
    whole = load_dataset("motifs", None)
    graphs = whole.graphs.subset(torch.arange(60))
    drawn = torch.rand(graphs.x.shape, generator=torch.Generator().manual_seed(0)).double()
    return replace(whole, graphs=replace(graphs, x=drawn))


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that does not amplify rounding, whatever its seed.

    The gradient of a bias before a batch norm is nothing but rounding; Adam divides it by its size
    plus 1e-8, and makes steps of a good length along it. The input of a ReLU may be zero but for
    rounding, and then rounding decides whether a gradient passes.
    """
    monkeypatch.setattr(optimizer, "Adam", partial(Adam, eps=1e-3))
    monkeypatch.setattr(torch, "relu_", torch.nn.functional.softplus)


@contextmanager
def default_precision(precision: torch.dtype) -> Iterator[None]:
    torch.set_default_dtype(precision)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def trained(
    config: RunConfig,
    dataset: Dataset,
    folder: Path | None = None,
    stop_after: int = 0,
    precision: torch.dtype = torch.float64,
) -> dict[str, Any]:
    """The weights after a training, and its metrics by epoch."""
    history: list[dict[str, float]] = []

    def report(epoch: int, metrics: dict[str, float]) -> None:
        if epoch <= config.training.epochs:  # beyond them, the progress of the effects
            history.append(metrics)
        if epoch == stop_after:
            raise KeyboardInterrupt

    graphs = replace(dataset.graphs, x=dataset.graphs.x.to(precision))
    with default_precision(precision):
        data = PreparedData.of(replace(dataset, graphs=graphs), config, CPU)
        model = fit_model(config, data, folder=folder, report=report).trained.model
    return {"weights": model.state_dict(), "history": history}


def save_trained(
    config: RunConfig, dataset: Dataset, folder: Path, precision: torch.dtype = torch.float64
) -> None:
    save_state(folder / str(rank()), trained(config, dataset, precision=precision))


def assert_same(one: dict[str, Any], other: dict[str, Any], tolerance: float = 1e-8) -> None:
    assert len(one["history"]) == len(other["history"])
    for here, there in zip(one["history"], other["history"], strict=True):
        assert here == pytest.approx(there, abs=tolerance)
    assert one["weights"].keys() == other["weights"].keys()
    for name, weights in one["weights"].items():
        assert torch.allclose(weights, other["weights"][name], atol=tolerance, rtol=0), name


STOPPING = {"ppo": {"min_probability": 0.0, "max_kl": 0.001}}


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ("gnn", {"network": {"dropout": 0.3}, "training": {"class_weights": True}}),
        ("gnn", {"conv": "gcn"}),
        ("gnn", {"conv": "gat", "network": {"gat_heads": 2}}),
        ("mlp", {"network": {"batch_norm": False}}),
        ("cores-node", STOPPING),
        ("cores-edge", {"network": {"dropout": 0.1}}),
    ],
)
@pytest.mark.usefixtures("steady")
def test_processes_train_the_model_that_one_process_trains(
    model: str, changes: dict[str, Any], motifs: Dataset, tmp_path: Path
) -> None:
    config = settings(model, **changes)
    in_ranks(2, lambda: save_trained(config, motifs, tmp_path))
    alone = trained(config, motifs)
    for rank in range(2):
        assert_same(alone, load_state(tmp_path / str(rank)))


@pytest.mark.usefixtures("steady")
def test_a_process_without_graphs_in_the_last_batch_takes_part(
    motifs: Dataset, tmp_path: Path
) -> None:
    model = "cores-node"
    graphs = len(
        training_graphs(settings(model), PreparedData.of(motifs, settings(model), CPU).split)
    )
    size = next(size for size in range(8, graphs) if graphs % size == 1)
    config = settings(model, training={"batch_size": size, "epochs": 2}, ppo={"env_steps": 17})
    in_ranks(3, lambda: save_trained(config, motifs, tmp_path))
    alone = trained(config, motifs)
    for rank in range(3):
        assert_same(alone, load_state(tmp_path / str(rank)))


@pytest.mark.usefixtures("steady")
def test_the_judge_is_the_one_that_a_process_trains_alone(
    motifs: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "EPOCHS", 2)
    config = settings("cores-edge")

    def train() -> dict[str, Any]:
        with default_precision(torch.float64):
            parts = judge.judge_parts(motifs, config)
            cache = tmp_path / "judge"
            found = judge.train_judge(motifs, parts, config, CPU, cache=cache)
        return {"weights": found.classifier.state_dict(), "history": []}

    in_ranks(2, lambda: save_state(tmp_path / str(rank()), train()))
    kept = load_state(tmp_path / "judge")["classifier"]
    (tmp_path / "judge").unlink()
    alone = train()
    for number in range(2):
        assert_same(alone, load_state(tmp_path / str(number)))
    assert_same(alone, {"weights": kept, "history": []})


def test_processes_go_on_from_the_checkpoint_of_the_first(
    motifs: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings("cores-edge")
    in_ranks(2, lambda: save_trained(config, motifs, tmp_path, torch.float32))
    (tmp_path / "run").mkdir()

    def stopped() -> None:
        with pytest.raises(KeyboardInterrupt):
            trained(config, motifs, tmp_path / "run", 3, torch.float32)

    monkeypatch.setattr("cores.training.journal.Journal.OVERHEAD", 1e9)
    in_ranks(2, stopped)
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()

    def resumed() -> None:
        # Only the first process has the folder.
        folder = tmp_path / "run" if ranks.leads() else tmp_path / "elsewhere"
        found = trained(config, motifs, folder, precision=torch.float32)
        assert len(found["history"]) == 1
        save_state(tmp_path / f"resumed{rank()}", found)

    in_ranks(2, resumed)
    whole = load_state(tmp_path / "0")
    whole["history"] = whole["history"][3:]
    for number in range(2):
        assert_same(whole, load_state(tmp_path / f"resumed{number}"), tolerance=0)
    assert len((tmp_path / "run" / "history.jsonl").read_text().splitlines()) == 4
    assert not (tmp_path / "elsewhere").exists()


def test_a_batch_of_one_node_in_all_is_normalised_by_what_was_seen_before() -> None:
    def one_node() -> None:
        norm = NodeNorm(3)
        norm(torch.randn(5 + rank(), 3))  # of all processes: eleven
        mean = norm.running_mean.clone()
        h = torch.ones(1 if rank() else 0, 3)
        expected = torch.nn.functional.batch_norm(h, norm.running_mean, norm.running_var)
        assert torch.equal(norm(h), expected)
        assert torch.equal(norm.running_mean, mean)

    in_ranks(2, one_node)


def test_processes_that_have_come_apart_are_stopped() -> None:
    def apart() -> None:
        model = torch.nn.Linear(2, 1)
        torch.nn.init.constant_(model.weight, float(rank()))
        torch.nn.init.zeros_(model.bias)
        journal = Journal(None, {"model": model})
        if ranks.leads():
            journal.record()
        else:
            with pytest.raises(UserError, match="differ after epoch 1"):
                journal.record()

    in_ranks(2, apart)


@pytest.mark.parametrize("model", ["sagpool", "diffpool", "sugar", "gsat", "random"])
def test_models_that_learn_from_whole_batches_are_refused(model: str, motifs: Dataset) -> None:
    def refused() -> None:
        with pytest.raises(UserError, match="without torchrun"):
            trained(settings(model), motifs)

    in_ranks(2, refused)


def test_all_processes_read_the_same_data(motifs: Dataset, tmp_path: Path) -> None:
    config = settings("gnn", training={"epochs": 1})

    def other() -> None:
        if ranks.leads():
            with pytest.raises(ranks.LostRankError):
                train_run(config, tmp_path / "run", dataset=motifs, device="cpu")
        else:
            fewer = replace(motifs, graphs=motifs.graphs.subset(torch.arange(50)))
            with pytest.raises(UserError, match="not the same for all processes"):
                train_run(config, tmp_path / "run", dataset=fewer, device="cpu")
            os._exit(0)

    in_ranks(2, other, meet=False)


def test_without_torchrun_there_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in launched(0, 2, 1):
        monkeypatch.delenv(name, raising=False)
    assert ranks.launch() is None
    monkeypatch.setenv("WORLD_SIZE", "2")  # another launcher's
    monkeypatch.setenv("RANK", "1")
    assert ranks.launch() is None
    with ranks.joined(CPU):
        assert ranks.current() is None
    for name, value in launched(0, 1, 1).items():
        monkeypatch.setenv(name, value)
    assert ranks.launch() is None  # alone


def command(out: Path, *more: str) -> list[str]:
    tiny = ("--model", "gnn", "--epochs", "2", "--network.hidden_dim", "8", "--device", "cpu")
    return ["train", "--dataset", "motifs", *tiny, "--out", str(out), *more]


def test_the_first_process_alone_prints_and_writes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = command(tmp_path / "run")
    assert statuses(2, lambda: main(arguments)) == [0, 0]
    shown = capfd.readouterr()
    assert shown.out.count("Run folder:") == 1
    assert len([line for line in shown.err.splitlines() if "training 2/2" in line]) == 1
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["epochs"] == 2
    # A finished run is told again, by the first process, from what it reads.
    assert statuses(2, lambda: main([*arguments, "--resume", "--json"])) == [0, 0]
    assert json.loads(capfd.readouterr().out)["epochs"] == 2


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_in_one_process_ends_all_with_its_line_and_status_2(
    failing: int, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: Any, **__: Any) -> Dataset:
        if int(os.environ["RANK"]) == failing:
            raise UserError("cannot read its graphs")
        return load_dataset("motifs", None)

    monkeypatch.setattr("cores.runs.run.load_dataset", load)
    assert statuses(2, lambda: main(command(tmp_path / "run"))) == [2, 2]
    assert capfd.readouterr().err == "cores: cannot read its graphs\n"


def test_an_error_in_all_processes_is_told_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert statuses(2, lambda: main(command(tmp_path / "run", "--seed", "-1"))) == [2, 2]
    assert capfd.readouterr().err == "cores: --seed must lie in [0, 2^63), got -1\n"
    assert statuses(2, lambda: main(["datasets"])) == [2, 2]
    assert capfd.readouterr().err == (
        "cores: torchrun is for `cores train`; start `cores datasets` without it\n"
    )


def test_a_fault_of_the_program_is_shown_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cores.runs.run.load_dataset", lambda *_, **__: 1 / 0)
    assert statuses(2, lambda: main(command(tmp_path / "run"))) == [1, 1]
    assert capfd.readouterr().err.count("ZeroDivisionError") == 1


def test_a_killed_process_ends_the_others_which_say_how_to_go_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def predict(*arguments: Any) -> Any:
        if rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return predict_proba(*arguments)

    monkeypatch.setattr("cores.training.supervised.predict_proba", predict)
    assert statuses(2, lambda: main(command(tmp_path / "run"))) == [2, -signal.SIGKILL]
    assert capfd.readouterr().err == (
        "cores: another process of this training has ended; the same command with --resume "
        "continues\n"
    )


TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "cores")


def by_torchrun(arguments: list[str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", *TORCHRUN, *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    print(ran.stdout)


def by_copies(arguments: list[str]) -> None:
    assert statuses(2, lambda: main(arguments)) == [0, 0]


@pytest.mark.parametrize(
    ("model", "start"),
    [("gnn", by_torchrun), pytest.param("cores-node", by_copies, marks=pytest.mark.slow)],
)
@pytest.mark.usefixtures("short_judge")
def test_processes_leave_the_run_folder_of_one_process(
    model: str,
    start: Callable[[list[str]], None],
    molecule_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Without batch norm: the gradients of the biases before it are rounding.

    Adam makes steps along them, and results of single precision differ by more than rounding after
    a few of these.
    """
    one, two = tmp_path / "one", tmp_path / "two"
    tiny = ["--epochs", "4", "--network.hidden_dim", "8", "--network.num_layers", "1", "--json"]
    tiny += ["--network.batch_norm", "false", "--device", "cpu", "--model", model]
    arguments = ["train", "--dataset", str(molecule_file), *tiny, "--out"]
    assert main([*arguments, str(one)]) == 0
    capfd.readouterr()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))  # another judge
    start([*arguments, str(two)])
    here, there = (json.loads((run / "metrics.json").read_text()) for run in (one, two))
    assert json.loads(capfd.readouterr().out) == there
    assert {path.name for path in one.iterdir()} == {path.name for path in two.iterdir()}
    configs = [json.loads((run / "config.json").read_text())["config"] for run in (one, two)]
    assert configs[0] == configs[1]
    assert here.pop("verdicts") == there.pop("verdicts")
    assert {**here, "seconds": 0} == pytest.approx({**there, "seconds": 0}, abs=1e-4)
    epochs = [(run / "history.jsonl").read_text().splitlines() for run in (one, two)]
    for lines in zip(*epochs, strict=True):
        first, second = map(json.loads, lines)
        assert first == pytest.approx(second, abs=1e-4)
    weights = [load_file(run / "model.safetensors") for run in (one, two)]
    for name, values in weights[0].items():
        assert torch.allclose(values, weights[1][name], atol=1e-4), name
