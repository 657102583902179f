"""A run's committee and policy as ONNX files, which say what the model says."""

import json
import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cores import __version__
from cores.errors import ProgramError, UserError
from cores.files import make_folder, write_atomically
from cores.graphs.batches import undirected_pairs
from cores.graphs.segments import pointers
from cores.models.classifier import BlindClassifier, Classifier
from cores.models.sparse import SparseClassifier
from cores.models.tensors import CommitteeTensors, PolicyTensors, TensorFunction
from cores.runs.trained import TrainedModel

COMMITTEE, POLICY = "committee.onnx", "policy.onnx"
"""Beside the run's own files, unless told otherwise; a model without a policy has the first."""
TOLERANCE = 1e-5
"""Most that a number of a file may differ from the model's."""
SIZES = ((5, 8), (1,), (12,), (1, 6, 1, 30), (3,) * 20)
"""Nodes of the graphs in each batch that files are checked on."""
_AXIS = {"x": 0, "edge_index": 1, "batch": 0, "edge_attr": 0}
"""The axis of every input that is as long as a batch has nodes or edges."""


@dataclass(frozen=True)
class Exported:
    """A file that was written, and how closely it agrees with the model."""

    file: str
    bytes: int
    max_difference: float
    """Largest difference in any output, on random graphs."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def export_run(run: Path, out: Path | None = None) -> list[Exported]:
    """Write committee and policy of a finished run as ONNX files, checked against them first.

    Args:
        run: The run folder.
        out: Folder for the files; None: the run's.
    """
    if any(find_spec(name) is None for name in ("onnx", "onnxscript", "onnxruntime")):
        raise UserError("exporting needs onnx: pip install 'cores-gnn[onnx]'")
    trained = TrainedModel.load(run)
    trained.need_classes("`cores export`")
    batches = [random_batch(trained, sizes, seed) for seed, sizes in enumerate(SIZES)]
    found = {
        name: _checked(run, trained, each, batches) for name, each in parts_of(trained).items()
    }
    folder = run if out is None else out
    make_folder(folder)
    exported = []
    for name, (function, content, difference) in found.items():
        write_atomically(folder / name, content)
        told = tuple(batches[0]), function.outputs
        exported.append(Exported(str(folder / name), len(content), difference, *told))
    return exported


def parts_of(trained: TrainedModel) -> dict[str, TensorFunction]:
    """The functions of tensors by file; models that are not CORES or its GNN are refused."""
    model = trained.model
    if isinstance(model, SparseClassifier):
        if model.policy.max_pieces:
            raise UserError(
                "a model whose kept part is connected (reward.max_pieces) is not exported"
            )
        found: dict[str, TensorFunction] = {COMMITTEE: CommitteeTensors(model.classifier)}
        return {
            name: each.eval() for name, each in (found | {POLICY: PolicyTensors(model)}).items()
        }
    if isinstance(model, BlindClassifier) or not isinstance(model, Classifier):
        raise UserError(
            f"the model {trained.config.model!r} cannot be exported; "
            "cores-node, cores-edge, cores-both and gnn can"
        )
    return {COMMITTEE: CommitteeTensors(model).eval()}


def _checked(
    run: Path,
    trained: TrainedModel,
    function: TensorFunction,
    batches: Sequence[dict[str, Tensor]],
) -> tuple[TensorFunction, bytes, float]:
    """A function as the content of a file, and the largest difference of the two."""
    try:
        proto = traced(function, batches[0])
    except Exception as error:  # whatever a layer does that cannot be traced
        raise UserError(
            f"the conv {trained.config.conv!r} cannot be exported ({type(error).__name__}); "
            "gin, gcn and gat can"
        ) from error
    for name, value in metadata(trained).items():
        proto.metadata_props.add(key=name, value=value)
    content = proto.SerializeToString()
    difference = max_difference(content, function, batches)
    if not difference <= TOLERANCE:
        raise ProgramError(
            f"an exported file differs from the model of {run} by {difference:.2g}, "
            f"more than {TOLERANCE:g}; nothing was written"
        )
    return function, content, difference


def traced(function: TensorFunction, batch: dict[str, Tensor]) -> Any:
    """A function as an ONNX graph for batches of any size; ``batch`` is an example."""
    dynamic = {name: {_AXIS[name]: torch.export.Dim.DYNAMIC} for name in batch}
    with _quiet(), torch.no_grad():
        program = torch.export.export(function, (), batch, dynamic_shapes=dynamic, strict=False)
        exported = torch.onnx.export(
            program,
            input_names=list(batch),
            output_names=list(function.outputs),
            verbose=False,
        )
    if exported is None:
        raise RuntimeError("torch returned no ONNX program")
    return exported.model_proto


def metadata(trained: TrainedModel) -> dict[str, str]:
    """Collect what a user of the files must know of the run, as JSON.

    A prediction set at level ``alpha`` holds the classes with ``1 - exp(log_probs) <= q_hat``.
    """
    schema, config = trained.schema, trained.config
    known: dict[str, Any] = {
        "cores_version": __version__,
        "model": config.model,
        "conv": config.conv,
        "class_names": schema.class_names,
        "feature_names": schema.feature_names,
        "edge_feature_names": schema.edge_feature_names,
    }
    if trained.has_committee:
        known |= {
            "removal": config.removal,
            "sufficiency": config.explanation.sufficiency,
            "class_from": config.explanation.class_from,
        }
    if len(trained.calibration):
        lac = config.sets.changed("lac", None)
        q_hat = trained.calibration.q_hat(config.alpha, lac)
        known["alpha"] = config.alpha
        known["q_hat"] = q_hat.clamp(max=1).tolist()  # no LAC score is above 1; JSON has no inf
    return {name: json.dumps(value) for name, value in known.items()}


def random_batch(trained: TrainedModel, sizes: tuple[int, ...], seed: int) -> dict[str, Tensor]:
    """Random graphs of some sizes as the model's inputs, isolated nodes and loops among them.

    A batch of single nodes has no edges, nor has every third one.
    """
    generator = torch.Generator().manual_seed(seed)
    counts = torch.tensor(sizes)
    owner = torch.arange(len(sizes)).repeat_interleave(counts)
    nodes, scaler = len(owner), trained.model.scaler.state_dict()
    noise = 2 * torch.rand(nodes, len(trained.schema.feature_names), generator=generator) - 1
    drawn = 0 if seed % 3 == 1 else nodes
    first = torch.randint(nodes, (drawn,), generator=generator)
    place = torch.rand(drawn, generator=generator) * counts[owner[first]]
    second = pointers(counts)[owner[first]] + place.long()
    pairs, _ = undirected_pairs(torch.stack([first, second]), nodes)  # [2, P], none twice
    batch = {
        "x": scaler["mean"] + scaler["std"] * noise,
        "edge_index": torch.cat([pairs, pairs.flip(0)], dim=1),
        "batch": owner,
    }
    if trained.config.network.edge_features and trained.schema.edge_feature_names:
        width = len(trained.schema.edge_feature_names)
        batch["edge_attr"] = torch.rand(pairs.size(1), width, generator=generator).repeat(2, 1)
    return batch


@torch.no_grad()
def max_difference(
    content: bytes, function: TensorFunction, batches: Sequence[dict[str, Tensor]]
) -> float:
    """Largest difference in any output; infinite where shapes differ, NaN where a number is."""
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    largest = torch.zeros((), dtype=torch.float64)
    for batch in batches:
        outputs = session.run(None, {name: value.numpy() for name, value in batch.items()})
        for expected, output in zip(function(**batch), map(torch.as_tensor, outputs), strict=True):
            if expected.shape != output.shape or expected.dtype != output.dtype:
                return math.inf
            difference = (expected.double() - output.double()).abs().flatten()
            largest = torch.cat([largest[None], difference]).max()  # of NaN and a number, NaN
    return float(largest)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch tells its own developers while it exports."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnx_ir", "onnxscript")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*LeafSpec", category=FutureWarning)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
