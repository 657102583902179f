"""Flat arrays are checked when they are read: file and array are named in one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from numpy.typing import NDArray

from cores.data.datasets import load_dataset
from cores.data.inputs.npz import ARRAYS
from cores.errors import UserError

FLAT: dict[str, NDArray[Any]] = {
    "x": np.ones((5, 2), dtype=np.float32),
    "edge_index": np.array([[0, 1, 0, 2], [1, 0, 2, 0]]),
    "edge_attr": np.ones((4, 3), dtype=np.float32),
    "y": np.array([0, 1]),
    "node_ptr": np.array([0, 2, 5]),
    "edge_ptr": np.array([0, 2, 4]),
    "node_gt": np.zeros(5, dtype=np.int8),
    "edge_gt": np.zeros(4, dtype=bool),
    "num_gt": np.array([1, 0]),
    "gt_ptr": np.array([0, 2, 2]),
    "gt_flat": np.array([1, 1]),
}


def read(path: Path, **changes: NDArray[Any]) -> Any:
    np.savez(path / "a.npz", **(FLAT | changes))
    return load_dataset(path / "a.npz")


def test_any_kind_of_number_is_read(tmp_path: Path) -> None:
    plain = read(tmp_path)
    same = read(
        tmp_path,
        x=FLAT["x"].astype(">f8"),
        edge_index=FLAT["edge_index"].astype(np.uint16),
        node_ptr=FLAT["node_ptr"].astype(np.uint64),
        edge_attr=FLAT["edge_attr"].astype(np.int8),
        y=FLAT["y"].astype(bool),
    )
    for name in ("x", "edge_index", "edge_attr", "y", "node_ptr", "edge_truth"):
        assert torch.equal(getattr(plain.graphs, name), getattr(same.graphs, name)), name


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("x", np.array(1.0), r"'x' must have the shape \[nodes, features\], got \[\]"),
        ("x", np.ones((5, 0)), "'x' has no columns"),
        ("x", np.array([["a", "b"]] * 5), "'x' must hold numbers, got <U1"),
        ("x", np.ones((5, 2), dtype=complex), "'x' must hold numbers, got complex128"),
        (
            "edge_index",
            np.zeros((3, 4), dtype=int),
            r"'edge_index' must have the shape \[2, edges\], got \[3, 4\]",
        ),
        ("edge_index", FLAT["edge_index"] * 1.0, "'edge_index' must hold whole numbers, got float"),
        ("edge_index", np.full((2, 4), 3), "'edge_index' names a node .*, in edge 0"),
        ("edge_attr", np.ones((3, 3)), "'edge_attr' has 3 edges, other arrays have 4"),
        ("y", np.array([0, 1, 1]), "'y' has 3 graphs, other arrays have 2"),
        ("y", np.array([2**63, 1], dtype=np.uint64), "'y' holds 9223372036854775808"),
        ("node_ptr", np.array([1, 2, 5]), "'node_ptr' must run from 0 to 5 nodes, got 1 to 5"),
        ("node_ptr", np.array([0, 2, 4]), "'node_ptr' must run from 0 to 5 nodes, got 0 to 4"),
        ("node_ptr", np.array([0, 5, 5]), "'node_ptr' gives graph 1 no nodes"),
        ("edge_ptr", np.array([0, 5, 4]), "'edge_ptr' must not fall, but does at 2"),
        ("edge_ptr", np.array([0, 4]), r"'edge_ptr' has 2 graphs \+ 1, other arrays have 3"),
        ("node_gt", np.zeros(4, dtype=bool), "'node_gt' has 4 nodes, other arrays have 5"),
        ("edge_gt", np.full(4, np.nan), "'edge_gt' must hold whole numbers, got float64"),
        ("num_gt", np.array([2, 0]), "'gt_ptr' does not count 'num_gt' marks for every node"),
        ("gt_ptr", np.array([0, 2, 9]), "'gt_ptr' must run from 0 to 2 marks, got 0 to 9"),
    ],
)
def test_what_is_wrong_with_an_array_is_told(
    name: str, wrong: NDArray[Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=rf"a\.npz: {message}"):
        read(tmp_path, **{name: wrong})


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(list(ARRAYS)),
    wrong=arrays_of.arrays(
        st.sampled_from([np.int64, np.uint8, np.float64, np.bool_, np.dtype("U2"), np.complex64]),
        arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6),
    ),
)
def test_any_array_is_read_or_refused_by_its_file(
    name: str, wrong: NDArray[Any], tmp_path: Path
) -> None:
    told = "a.npz: 'none'"
    try:
        read(tmp_path, **{name: wrong})
    except UserError as error:
        told = str(error)
    assert "a.npz: '" in told
    assert "\n" not in told


@pytest.mark.parametrize("name", ["x", "edge_attr"])
@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e300])
def test_a_graph_whose_features_are_no_numbers_is_left_out_or_refused(
    name: str, value: float, tmp_path: Path
) -> None:
    graphs = 6
    arrays = {
        "x": np.random.default_rng(0).normal(size=(2 * graphs, 1)),
        "edge_index": np.tile([[0, 1], [1, 0]], graphs),
        "edge_attr": np.ones((2 * graphs, 1)),
        "y": np.arange(graphs) % 2,
        "node_ptr": np.arange(graphs + 1) * 2,
        "edge_ptr": np.arange(graphs + 1) * 2,
    }
    arrays[name][7] = value
    np.savez(tmp_path / "a.npz", **arrays)
    dataset = load_dataset(tmp_path / "a.npz")
    word = "node" if name == "x" else "edge"
    assert len(dataset) == graphs - 1
    reason = f"line 4 (3): has NaN, infinite or too large {word} features"
    assert str(dataset.unusable) == reason
    with pytest.raises(UserError, match=r"a.npz: line 4 \(3\): has NaN, .*on_error"):
        load_dataset(tmp_path / "a.npz", on_error="fail")
