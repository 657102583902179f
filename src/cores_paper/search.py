"""Search for settings: a sampler proposes them, runs try them, the selection part decides."""

import json
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from cores import UserError, load_dataset
from cores.config import RewardConfig, RunConfig, merged
from cores.config.presets import preset_config
from cores.data.dataset import need_classes
from cores.data.inputs.columns import ColumnNames
from cores.errors import failed
from cores.evaluation.predictions import predict
from cores.files import escape, in_turn, is_held, locked, make_folder, unlinked, write_atomically
from cores.models.sparse import SparseClassifier
from cores.reward import pieces_penalty
from cores.runs.device import choose_device, tuned_cpu
from cores.runs.fit import PreparedData, training_settings
from cores.runs.opened import Run
from cores.runs.runner import has_fault, run_folder, train_in_worker
from cores.runs.workers import in_workers
from cores.tasks.metrics import accuracy, balanced_accuracy, class_mean
from cores.training.rollouts import selection_reward
from cores_paper.presets import search_space

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, Trial

Sampler = Literal["tpe", "random"]
STUDY, SETTINGS = "study.log", "settings.toml"
POLICY_RATIO, CRITIC_RATIO = "policy_lr_ratio", "critic_lr_ratio"
"""Names of the space: the classifier's rate divided by the policy's, that by the critic's."""
OWNER, OWNERS = "owner", "owners"
"""Attribute of a trial that names the process it belongs to, and the folder of those alive."""
FAILURE = "failure"
"""Attribute of a trial that will not be tried again: why."""


@dataclass(frozen=True)
class Tried:
    """One proposal and what the selection part said of it."""

    number: int
    settings: dict[str, Any]
    """What was changed, nested like a settings file."""
    score: float | None
    """None for a failed one."""
    failure: str | None = None


def search(
    base: RunConfig,
    folder: Path,
    *,
    trials: int,
    sampler: Sampler = "tpe",
    workers: int = 1,
    device: str = "auto",
    data_root: Path | None = None,
    columns: ColumnNames | None = None,
    done: Callable[[Tried], None] = lambda tried: None,
) -> list[Tried]:
    """Try settings until the study in ``folder`` has as many trials; the best first.

    The study may be interrupted and gone on with, and several processes may share it. In the end
    ``settings.toml`` there holds the best settings.

    Args:
        base: What is not searched for; its reward is the yardstick of every CORES model tried.
        folder: Of the study and its runs.
        trials: How many proposals, those of earlier calls included.
        sampler: ``random``, as in the paper, or ``tpe``, which learns from what was tried.
        workers: Processes.
        device: Of the runs.
        data_root: Folder of the datasets.
        columns: Which columns of a file hold what.
        done: Called with every trial as it ends.
    """
    # What is wrong with these would be wrong in every trial.
    choose_device(device)
    found = load_dataset(
        base.dataset, data_root, columns=columns, task=base.task, reach=base.network.reach
    )
    need_classes(found, "`cores search`")
    study = _study(base, folder)
    _take_up(study, folder)
    open_trials: dict[RunConfig, Trial] = {}
    name = f"{platform.node()}-{uuid4().hex[:12]}"

    def proposals() -> Iterator[RunConfig]:
        while len(_counted(study)) < trials:
            trial = _asked(study, folder, name, base.seed, sampler)
            try:
                config = _proposed(base, trial)
            except UserError as error:
                _give_up(study, trial, str(error))
                continue
            if config in open_trials:
                _give_up(study, trial, "it is being tried already")
                continue
            open_trials[config] = trial
            yield config

    job = train_in_worker(folder, device, data_root, columns)
    with (
        _owner(unlinked(folder / OWNERS) / name),
        in_workers(proposals(), job, device, workers) as ended,
    ):
        for config, failure in ended:
            trial = open_trials.pop(config)
            if failure is None:
                run = run_folder(folder, config)
                study.tell(trial, selection_score(run, base.reward, data_root))
            else:
                _give_up(study, trial, failure)
            done(next(each for number, each in _tried(study, base) if number == trial.number))
    tried = [each for _, each in _tried(study, base)]
    tried.sort(key=lambda trial: -2.0 if trial.score is None else trial.score, reverse=True)
    if not tried:
        raise UserError(f"all trials in {folder} are locked by other processes; wait for them")
    if tried[0].score is None:
        raise failed(
            f"all {len(tried)} trials failed, the first: {tried[0].failure}; "
            "fix that, then start again with another `out`",
            ours=any(map(has_fault, folder.iterdir())),
        )
    write_atomically(folder / SETTINGS, _toml(base, tried[0]).encode())
    return tried


@contextmanager
def _owner(folder: Path) -> Iterator[None]:
    """Show other processes, by a lock that dies with this one, that it works on its trials."""
    with locked(folder):
        yield
    shutil.rmtree(folder)


@tuned_cpu()
def selection_score(run: Path, reward: RewardConfig, data_root: Path | None = None) -> float:
    """What a finished run is worth on its selection part.

    Accuracy; for a model with a policy the mean reward of the parts that it shows, by the same
    lambda and d whatever it was trained with. Where classes are balanced, means over the classes.
    """
    opened = Run.open(run, device="cpu")
    trained, config = opened.trained, opened.config
    data = PreparedData.of(opened.dataset(data_root), config, opened.device)
    balanced = training_settings(config, data).balanced
    graphs, model = data.part("selection"), trained.model
    if not isinstance(model, SparseClassifier):
        probs = predict(model, graphs).probs
        return (balanced_accuracy if balanced else accuracy)(probs, graphs.y)
    found = predict(model, graphs)
    kept = found.kept_ratio(graphs, model.policy.removal)
    rewards = selection_reward(found.probs, graphs.y, kept, reward)
    if reward.pieces_penalty and found.pieces is not None:
        most = max(1, reward.max_pieces)
        cost = pieces_penalty(found.pieces, graphs.num_nodes, most)
        rewards = rewards - reward.pieces_penalty * cost
    return class_mean(rewards, graphs.y) if balanced else float(rewards.mean())


def _study(base: RunConfig, folder: Path) -> "Study":
    try:
        import optuna
        from optuna.storages.journal import JournalFileBackend
    except ImportError:
        raise UserError("searching needs optuna: pip install 'cores-gnn[search]'") from None

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    make_folder(folder)
    journal = unlinked(folder / STUDY)  # optuna appends to it
    if not journal.exists() and (strange := sorted(path.name for path in folder.iterdir())):
        raise UserError(f"{folder} holds {strange[0]} and no search; choose another `out`")
    try:
        storage = optuna.storages.JournalStorage(JournalFileBackend(str(journal)))
        others = {study.study_name for study in storage.get_all_studies()} - {base.key}
        if not others:
            return optuna.create_study(
                storage=storage, study_name=base.key, direction="maximize", load_if_exists=True
            )
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        reason = type(error).__name__
        raise UserError(f"{journal} is damaged ({reason}); choose another `out`") from None
    raise UserError(f"{folder} holds a search of other settings; choose another `out`")


def _asked(study: "Study", folder: Path, owner: str, seed: int, sampler: Sampler) -> "Trial":
    """A new trial that belongs to this process, with a draw of its own.

    Seeded by the number of trials before it, a search that goes on does not propose again what it
    proposed at first, one that was killed proposes what it would have proposed, and processes that
    share a study do not propose the same.
    """
    from optuna.samplers import RandomSampler, TPESampler

    with in_turn(folder / STUDY):  # nobody may take up a trial that has no owner yet
        earlier = len(_counted(study))
        trial = study.ask()
        trial.set_user_attr(OWNER, owner)
    own_seed = (seed + earlier) % 2**32
    study.sampler = (
        RandomSampler(seed=own_seed)
        if sampler == "random"
        else TPESampler(seed=own_seed, constant_liar=True)
    )
    return trial


def _take_up(study: "Study", folder: Path) -> None:
    """Propose again what a killed process left open; the runs go on from their checkpoints."""
    from optuna.trial import TrialState

    with in_turn(folder / STUDY):
        for trial in study.get_trials(states=(TrialState.RUNNING,)):
            if not is_held(folder / OWNERS / trial.user_attrs.get(OWNER, "")):
                study.enqueue_trial(trial.params)
                study.tell(trial.number, state=TrialState.FAIL)


def _counted(study: "Study") -> list["FrozenTrial"]:
    """The trials without those that were left open and proposed again, or are yet to be."""
    from optuna.trial import TrialState

    finished = (TrialState.COMPLETE, TrialState.RUNNING)
    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state in finished or FAILURE in trial.user_attrs
    ]


def _give_up(study: "Study", trial: "Trial", why: str) -> None:
    from optuna.trial import TrialState

    trial.set_user_attr(FAILURE, why)
    study.tell(trial, state=TrialState.FAIL)


def _proposed(base: RunConfig, trial: "Trial") -> RunConfig:
    """The configuration that a trial proposes. Values go as JSON: optuna knows no lists."""
    proposed = {
        name: trial.suggest_categorical(name, [json.dumps(value) for value in values])
        for name, values in search_space(base).items()
    }
    return _config(base, _settings(base, proposed))


def _config(base: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    return RunConfig.from_settings(merged(base.settings, settings))


def _settings(base: RunConfig, proposed: Mapping[str, str]) -> dict[str, Any]:
    """A proposal nested like a settings file, the ratios turned into rates.

    An entropy coefficient that falls during training keeps the factor by which it falls.
    """
    values = {name: json.loads(text) for name, text in proposed.items()}
    if POLICY_RATIO in values:
        values["ppo.learning_rate"] = base.training.learning_rate / values.pop(POLICY_RATIO)
    if CRITIC_RATIO in values:
        rate = values.get("ppo.learning_rate", base.ppo.learning_rate)
        values["paper.critic_learning_rate"] = rate / values.pop(CRITIC_RATIO)
    if "ppo.entropy_coef" in values and base.ppo.entropy_coef:
        fall = base.ppo.final_entropy_coef / base.ppo.entropy_coef
        values["ppo.final_entropy_coef"] = fall * values["ppo.entropy_coef"]
    settings: dict[str, Any] = {}
    for name, value in values.items():
        group, setting = name.split(".")
        settings.setdefault(group, {})[setting] = value
    return settings


def _tried(study: "Study", base: RunConfig) -> Iterator[tuple[int, Tried]]:
    """What was tried, by the numbers of the study; our own leave out what was begun again."""
    for number, trial in enumerate(_counted(study)):
        if trial.state.is_finished():
            settings, failure = _settings(base, trial.params), trial.user_attrs.get(FAILURE)
            yield trial.number, Tried(number, settings, trial.value, failure)


def _toml(base: RunConfig, best: Tried) -> str:
    """The settings file of a trial: all that differs from its preset but dataset, split, seed."""
    import tomli_w

    preset = preset_config(base.dataset, base.model, base.conv, base.preset, {}).settings
    found = _config(base, best.settings).settings
    changed: dict[str, Any] = {"model": base.model, "conv": base.conv, "preset": base.preset}
    if base.alpha != preset["alpha"]:
        changed["alpha"] = base.alpha
    for group, settings in found.items():
        if isinstance(settings, dict):
            changed[group] = {
                name: value for name, value in settings.items() if value != preset[group][name]
            }
    head = escape.terminal(  # a comment ends with its line
        f"# Found by `cores search` on {base.dataset}, split {base.split}: trial {best.number}, "
        f"{best.score:.4f} on the selection part."
    )
    written = {name: value for name, value in changed.items() if value != {}}
    return f"{head}\n" + tomli_w.dumps(written)
