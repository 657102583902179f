"""Shared fixtures. Every tensor shape and type in the package is checked while tests run."""

import gc
import json
import multiprocessing
import os
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jaxtyping
import psutil
import pytest
import torch
from jaxtyping import install_import_hook

# Before the package is imported anywhere: the hook turns annotations into checks.
install_import_hook(["cores", "cores_paper"], "beartype.beartype")

# Two workers with as many threads each as there are cores would wait for each other.
torch.set_num_threads(1)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects no garbage among the modules: they are many, and stay.

    Copies of this process share their memory with it as long as nobody looks at them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The datasets; without CORES_DATA the test is skipped, with a wrong one it fails."""
    named = os.environ.get("CORES_DATA")
    if not named:
        pytest.skip("needs the datasets: set CORES_DATA to their folder")
    root = Path(named)
    assert (root / "tu").is_dir(), f"CORES_DATA={named} has no folder tu"
    return root


SMILES = ("CCO", "c1ccccc1O", "CC(=O)N", "C1CCCCC1", "[Na+].[Cl-]", "CN(C)C", "[H]OC=C", "c1ccncc1")


@pytest.fixture(scope="session")
def molecule_table() -> Callable[..., str]:
    """Makes a CSV table of molecules whose label is whether they have a ring."""

    def table(rows: int, labelled: bool = True) -> str:
        lines = ["id,smiles,label" if labelled else "id,smiles"]
        for number in range(rows):
            smiles = SMILES[number % len(SMILES)] if number % 3 else "C" * (1 + number % 7)
            label = f",{'ring' if '1' in smiles else 'chain'}" if labelled else ""
            lines.append(f"m{number},{smiles}{label}")
        return "\n".join(lines) + "\n"

    return table


@pytest.fixture(scope="session")
def train_tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Trains a tiny model on a file for two epochs and gives its folder, made once for each.

    One of CORES has a committee of two.
    """
    done: dict[tuple[Path, str], Path] = {}

    def train(path: Path, model: str = "cores-node") -> Path:
        if (path, model) not in done:
            from cores import Cores

            network = {"hidden_dim": 8, "num_layers": 1, "edge_features": True}
            estimator = Cores(
                removal=model.removeprefix("cores-") if model.startswith("cores-") else None,
                epochs=2,
                device="cpu",
                progress=False,
                judge=False,
                members=2,
                settings={
                    "network": network,
                    "training": {"batch_size": 32},  # two epochs are hardly a step otherwise
                }
                | ({"model": model} if "cores" not in model else {}),
            )
            done[path, model] = tmp_path_factory.mktemp("runs") / model
            estimator.fit(path).save(done[path, model])
        return done[path, model]

    return train


@pytest.fixture(scope="session")
def molecule_file(
    tmp_path_factory: pytest.TempPathFactory, molecule_table: Callable[..., str]
) -> Path:
    """160 labelled molecules."""
    path = tmp_path_factory.mktemp("molecules") / "train.csv"
    path.write_text(molecule_table(160))
    return path


@pytest.fixture(scope="session")
def molecule_run(train_tiny: Callable[..., Path], molecule_file: Path) -> Path:
    """The folder of a tiny model that removes atoms."""
    return train_tiny(molecule_file)


@pytest.fixture(scope="session")
def drawn_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a committee of three on generated motifs: what is kept grows with tau."""
    return _drawn("motifs", tmp_path_factory.mktemp("drawn") / "run")


@pytest.fixture(scope="session")
def drawn_molecule_run(molecule_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of molecules."""
    return _drawn(str(molecule_file), tmp_path_factory.mktemp("drawn") / "molecules")


@pytest.fixture(scope="session")
def drawn_edge_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of a model that removes edges alone, on generated motifs."""
    return _drawn("motifs", tmp_path_factory.mktemp("drawn") / "edges", "cores-edge")


def _drawn(source: str, run: Path, name: str = "cores-node") -> Path:
    """A model whose weights are drawn, so that its committee is sure of some graphs.

    After two epochs of training it would be sure of none.
    """
    from dataclasses import asdict

    from cores import load_dataset
    from cores.config.presets import preset_config
    from cores.models.build import build_effects, build_model
    from cores.models.committee import Committee
    from cores.models.sparse import SparseClassifier
    from cores.runs.fit import PreparedData
    from cores.runs.folder import write_identity
    from cores.runs.trained import DataSchema, TrainedModel, calibrate

    small = {
        "network": {"hidden_dim": 8, "num_layers": 2, "pooling": ["mean"]},
        "committee": {"members": 3},
    }
    dataset = load_dataset(source)
    config = preset_config(dataset.name, name, "gin", "default", small)
    device = torch.device("cpu")
    data = PreparedData.of(dataset, config, device)
    schema = DataSchema.of(data.dataset)
    torch.manual_seed(0)
    model = build_model(config, schema.dims).eval()
    assert isinstance(model, SparseClassifier)
    assert isinstance(model.classifier, Committee)
    model.effects = build_effects(config, schema.dims, model.scaler)
    part, policy = data.part("calibration"), model.policy
    (batch,) = part.batches(len(part))
    with torch.no_grad():
        head = policy.edge_head if policy.removal == "edge" else policy.node_head
        head.weight.normal_()
        head.weight /= policy(batch).std()
        head.bias -= policy(batch).median()
        first, *others = model.classifier.members
        first.head.weight.normal_()
        for member in others:
            member.load_state_dict(first.state_dict())
            member.head.weight *= 1 + torch.rand_like(member.head.weight) / 2
        for member in model.classifier.members:
            member.head.weight *= 3 / member.logits(batch).std(dim=0).mean()
            member.head.bias -= member.logits(batch).mean(dim=0)
    calibration = calibrate(model, part)
    trained = TrainedModel(config, schema, model, calibration, data.split.test)
    run.mkdir()
    write_identity(run, config, asdict(schema), device)
    trained.save(run)
    return run


@pytest.fixture
def recorded_run(molecule_run: Path, tmp_path: Path) -> Path:
    """The same with a history of two epochs; its name looks like a formula."""
    run = Path(shutil.copytree(molecule_run, tmp_path / "cost_$x^2$"))
    shown = {"selection_accuracy": 0.5, "selection_ratio": 1.0}
    epochs = [{"epoch": 1, "loss": 0.7, **shown}, {"epoch": 2, "reward": 0.1, **shown}]
    (run / "history.jsonl").write_text("".join(json.dumps(epoch) + "\n" for epoch in epochs))
    return run


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's chromium, without the sandbox: a container has no room for it, pages are our own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def hard_to_read() -> Callable[[Any], list[str]]:
    """Tells what axe-core finds wrong with a page: contrast, names of controls, headings."""
    from axe_playwright_python.sync_playwright import Axe

    def found(page: Any) -> list[str]:
        checked = Axe().run(page).response
        assert any(each["id"] == "color-contrast" for each in checked["passes"])
        return [
            f"{each['id']}: {each['nodes'][0]['html'][:200]}"
            for each in checked["violations"]
            if each["impact"] in ("serious", "critical")
        ]

    return found


@pytest.fixture
def begun() -> Iterator[Callable[[Callable[[], object]], psutil.Process]]:
    """Begins something in a copy of this process; a status that it gives is the copy's.

    A copy has imported everything already: that takes most of the time of a new process.
    """
    children: list[psutil.Process] = []

    def begin(action: Callable[[], object]) -> psutil.Process:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads; the copy needs none
            child = os.fork()
        if child == 0:
            status = 1
            try:
                found = action()
                status = found if isinstance(found, int) else 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        children.append(psutil.Process(child))
        return children[-1]

    yield begin
    for child in children:
        if child.is_running():  # a test that failed did not end it
            child.kill()


@pytest.fixture
def killed(
    begun: Callable[[Callable[[], object]], psutil.Process],
) -> Callable[[Callable[[], object]], None]:
    """Does something in a copy of this process, which must be killed (SIGKILL) before its end."""

    def until_killed(action: Callable[[], object]) -> None:
        assert begun(action).wait() == -signal.SIGKILL, "it came to its end"

    return until_killed


@pytest.fixture
def few_motifs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generated dataset with a fifth of its graphs, for tests that need not learn much.

    Processes that are started, not copied, have all of them.
    """
    from cores.data import datasets
    from cores.data.synthetic import ba_motifs

    monkeypatch.setattr(datasets, "ba_motifs", partial(ba_motifs, num_graphs=200))


@pytest.fixture
def short_judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A judge that learns for one epoch, and a cache of its own."""
    from cores.training import judge

    monkeypatch.setattr(judge, "EPOCHS", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def short_judges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The same for all tests of a module, and the runs that they share: two epochs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cores.training.judge.EPOCHS", 2)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def unchecked() -> Iterator[None]:
    """No checks of shapes and types, for long trainings; shorter ones call the same with them."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many runs one after the other in this process: a new one takes longer to start than they."""
    from cores.runs import workers as processes

    def in_this_process(
        items: Iterable[Any], job: Callable[[Any], str | None], workers: int
    ) -> Iterator[tuple[Any, str | None]]:
        for item in items:
            yield item, job(item)

    monkeypatch.setattr(processes, "in_processes", in_this_process)


@pytest.fixture(scope="session")
def copied_workers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A way to begin processes: each is a copy of one that has imported what a job needs.

    They know no more of this process than new ones do, and get their jobs in the same form. What
    tests change in the environment does not reach them; their cache is their own.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["cores.runs.run", "cores.runs.predict", "distributed.nanny"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        forkserver.ensure_running()
    return context


@pytest.fixture
def quick_workers(copied_workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes that need not import torch, of commands and of dask's local clusters."""
    import dask
    import distributed.utils

    from cores.runs import workers

    begin = SimpleNamespace(
        get_context=lambda _: copied_workers, parent_process=multiprocessing.parent_process
    )
    monkeypatch.setattr(workers, "multiprocessing", begin)
    monkeypatch.setattr(distributed.utils, "_forkserver_preload_set", True)
    settings = dask.config.config["distributed"]["worker"]
    monkeypatch.setitem(settings, "multiprocessing-method", "forkserver")


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Gives the command line's status, and what it printed to standard output and error."""
    from cores.__main__ import main

    def ask(*arguments: object) -> tuple[int, str, str]:
        status = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return ask


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user without datasets, whose cache is empty."""
    monkeypatch.delenv("CORES_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def tu_files() -> dict[str, str]:
    """Twelve graphs in TU format, by file name: paths (label 1) and triangles (label 5)."""
    edges, indicator, labels, kinds, sizes, bonds = [], [], [], [], [], []
    first = 1
    for graph in range(12):
        triangle = graph % 2
        pairs = [(0, 1), (1, 2)] + ([(0, 2)] if triangle else [])
        for a, b in pairs:
            edges += [f"{first + a}, {first + b}", f"{first + b}, {first + a}"]
            bonds += [str(1 + triangle)] * 2
        indicator += [str(graph + 1)] * 3
        kinds += ["2", "4", "2"]
        sizes += [f"{graph}.5, -1.0"] * 3
        labels.append("5" if triangle else "1")
        first += 3
    return {
        "toy_A.txt": "\n".join(edges),
        "toy_graph_indicator.txt": "\n".join(indicator),
        "toy_graph_labels.txt": "\n".join(labels),
        "toy_node_labels.txt": "\n".join(kinds),
        "toy_node_attributes.txt": "\n".join(sizes),
        "toy_edge_labels.txt": "\n".join(bonds),
    }


@pytest.fixture
def write_files(tmp_path: Path) -> Callable[[str, dict[str, str]], Path]:
    """Writes files, given by name and text, into a new folder."""

    def write(folder: str, files: dict[str, str]) -> Path:
        (tmp_path / folder).mkdir(parents=True)
        for name, text in files.items():
            (tmp_path / folder / name).write_text(text + "\n")
        return tmp_path / folder

    return write


@pytest.fixture
def tu_folder(write_files: Callable[..., Path], tu_files: dict[str, str]) -> Path:
    """The same twelve graphs as a folder."""
    return write_files("toy", tu_files)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets every run of a model fail."""
    from cores.config import RunConfig
    from cores.errors import UserError
    from cores.runs import run

    train = run.train_run

    def fail(model: str) -> None:
        def train_others(config: RunConfig, *arguments: Any, **options: Any) -> dict[str, Any]:
            if config.model == model:
                raise UserError("no luck")
            return train(config, *arguments, **options)

        monkeypatch.setattr(run, "train_run", train_others)

    return fail
