"""Saved states come back equal, and nothing in a file is ever run."""

import json
import pickle
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save

from cores.errors import UserError
from cores.files import write_atomically
from cores.training.state import (
    RandomState,
    check_fits,
    forked_rng,
    load_state,
    restore_adam,
    save_state,
)


def test_an_optimisers_state_comes_back_equal(tmp_path: Path) -> None:
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(layer.parameters(), fused=True)
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    save_state(
        tmp_path / "s", {"optimizer": optimizer.state_dict(), "none": None, "inf": -torch.inf}
    )
    loaded = load_state(tmp_path / "s")
    again = torch.optim.Adam(torch.nn.Linear(3, 2).parameters(), fused=True)
    again.load_state_dict(loaded["optimizer"])
    old, new = optimizer.state_dict()["state"], again.state_dict()["state"]
    assert old.keys() == new.keys() == {0, 1}
    assert all(torch.equal(old[k][name], new[k][name]) for k in old for name in old[k])
    assert loaded["none"] is None
    assert loaded["inf"] == -torch.inf


def test_random_numbers_go_on_where_they_were(tmp_path: Path) -> None:
    random = RandomState(0, torch.device("cpu"))
    torch.rand(3)
    save_state(tmp_path / "s", random.state_dict())
    expected = torch.rand(3), torch.rand(3, generator=random.batches)
    other = RandomState(7, torch.device("cpu"))
    other.load_state_dict(load_state(tmp_path / "s"))
    assert torch.equal(torch.rand(3), expected[0])
    assert torch.equal(torch.rand(3, generator=other.batches), expected[1])


def test_names_that_look_like_paths_do_not_collide(tmp_path: Path) -> None:
    state = {"a/b": torch.zeros(1), "a": {"b": torch.ones(1)}}
    save_state(tmp_path / "s", state)
    loaded = load_state(tmp_path / "s")
    assert loaded["a/b"].item() == 0
    assert loaded["a"]["b"].item() == 1


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (pytest.fail, ("a pickle was run",))


@pytest.mark.parametrize(
    "content",
    [pickle.dumps(Bomb()), b"", b"\xff" * 100, b"\x08\x00\x00\x00\x00\x00\x00\x00{}      "],
    ids=["pickle", "empty", "noise", "no structure"],
)
def test_hostile_files_are_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(UserError, match="is damaged or not ours"):
        load_state(tmp_path / "s")


def test_a_flipped_bit_anywhere_in_a_file_is_noticed(tmp_path: Path) -> None:
    """In the header, in the structure, in a tensor: it is refused, or it changed nothing."""
    path, state = tmp_path / "s", {"weights": torch.tensor([1.5, -2.0]), "epoch": 3, "name": "a"}
    save_state(path, state)
    content = path.read_bytes()
    for place in range(0, len(content), 3):  # enough, and quicker
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with suppress(UserError):
            loaded = load_state(path)
            assert torch.equal(loaded.pop("weights"), state["weights"]), place
            assert loaded == {"epoch": 3, "name": "a"}, place


def test_a_tensor_that_is_read_as_another_one_is_noticed(tmp_path: Path) -> None:
    """The same bytes, the same names: only the header's word on the shape is another."""
    path = tmp_path / "s"
    save_state(path, {"weights": torch.arange(6.0).view(2, 3)})
    content = path.read_bytes()
    assert content.count(b'"shape":[2,3]') == 1
    path.write_bytes(content.replace(b'"shape":[2,3]', b'"shape":[3,2]'))
    with pytest.raises(UserError, match="its content is not what its checksum says"):
        load_state(path)


def test_a_file_of_an_earlier_version_has_no_checksum_and_is_read(tmp_path: Path) -> None:
    structure = json.dumps({"dict": [["a", {"tensor": "0"}], ["b", [1, None]]]})
    content = save({"0": torch.ones(2)}, metadata={"structure": structure})
    (tmp_path / "s").write_bytes(content)
    loaded = load_state(tmp_path / "s")
    assert torch.equal(loaded["a"], torch.ones(2))
    assert loaded["b"] == [1, None]


@pytest.mark.parametrize(
    "structure",
    [
        *("[" * 100_000 + "]" * 100_000, "[]", "3", '{"dict": 3}'),
        *('{"dict": [["a", {"tensor": "1"}]]}', '{"tensor": "0"}'),
    ],
    ids=["deep", "list", "number", "no pairs", "no tensor", "only a tensor"],
)
def test_a_crafted_structure_is_refused_in_one_line(tmp_path: Path, structure: str) -> None:
    (tmp_path / "s").write_bytes(save({"0": torch.ones(2)}, metadata={"structure": structure}))
    with pytest.raises(UserError, match="is damaged or not ours"):
        load_state(tmp_path / "s")


def test_equal_states_are_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save_state(tmp_path / name, {"x": torch.ones(2), "y": [1.5, {"z": None}]})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UserError, match=r"cannot write .*file: No space left on device"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_tensors_that_share_memory_are_saved_each(tmp_path: Path) -> None:
    shared = torch.arange(4.0)
    save_state(tmp_path / "s", {"all": shared, "half": shared[:2], "again": shared})
    loaded = load_state(tmp_path / "s")
    assert [loaded[name].tolist() for name in ("half", "again")] == [[0, 1], [0, 1, 2, 3]]


def test_what_cannot_be_saved_is_not_saved_as_something_else(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="cannot save a set"):
        save_state(tmp_path / "s", {"names": {"a"}})
    assert not (tmp_path / "s").exists()


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"cannot read {tmp_path}: "):
        load_state(tmp_path)


def test_the_numbers_of_a_run_follow_from_its_seed() -> None:
    drawn = []
    for seed in (3, 3, 4):
        random = RandomState(seed, torch.device("cpu"))
        drawn.append((float(torch.rand(())), float(torch.rand((), generator=random.batches))))
    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[2][0]
    assert drawn[0][1] != drawn[2][1]


CUDA = torch.device("cuda", 0)


def test_the_random_numbers_of_a_gpu_are_part_of_the_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stand-in for its generator: what was taken from it is put back there, and only there."""
    put_back: list[tuple[object, torch.device]] = []
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: ("state of", device))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda *given: put_back.append(given))
    on_gpu, on_cpu = RandomState(0, CUDA), RandomState(0, torch.device("cpu"))
    on_cpu.load_state_dict(on_gpu.state_dict())
    on_gpu.load_state_dict(on_cpu.state_dict())
    assert put_back == []
    on_gpu.load_state_dict(on_gpu.state_dict())
    assert put_back == [(("state of", CUDA), CUDA)]


def test_a_fork_covers_the_device_in_use_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.random, "fork_rng", lambda devices: nullcontext(devices))
    with forked_rng(CUDA) as covered:
        assert covered == [CUDA]
    with forked_rng(torch.device("cpu")) as covered:
        assert covered == []


def test_what_is_drawn_in_a_fork_does_not_move_the_numbers_outside() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    with forked_rng(torch.device("cpu")):
        torch.rand(5)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("saved", "fresh"),
    [
        *((torch.ones(2), None), ({"a": 1}, {}), ([1.5], []), ([1.5], ())),
        *((1, 2.0), ([1, 2], (3, 4)), ({"a": [torch.ones(2)]}, {"a": [torch.zeros(2)]})),
    ],
    ids=str,
)
def test_a_state_of_the_same_make_fits_and_anything_fits_where_nothing_is_yet(
    saved: Any, fresh: Any
) -> None:
    check_fits(saved, fresh)


@pytest.mark.parametrize(
    ("saved", "fresh"),
    [
        *(({"a": 1}, {"b": 1}), ({"a": 1, "b": 1}, {"a": 1}), ({"a": 1}, {"a": 1, "b": 1})),
        *(([1], {"a": 1}), ([1, 2], [1]), ([1], [1, 2]), (1, [1]), ({0: 1}, [1]), ("a", ["a"])),
        *(("1", 1.0), (1.0, 1), (True, 1.0), (None, 1), ([1, "2"], [1, 2]), ([[1.0]], [[1]])),
        *((1.0, torch.ones(())), (torch.ones(2), torch.ones(3))),
        (torch.ones(2).double(), torch.ones(2)),
    ],
    ids=str,
)
def test_a_state_of_another_make_is_refused_in_the_same_words(saved: Any, fresh: Any) -> None:
    with pytest.raises(ValueError, match="a state of something else"):
        check_fits(saved, fresh)


def stepped(steps: int, **settings: Any) -> tuple[torch.nn.Linear, torch.optim.Adam]:
    """A layer of ones after so many equal steps."""
    layer = torch.nn.Linear(3, 2)
    torch.nn.init.ones_(layer.weight)
    optimizer = torch.optim.Adam(layer.parameters(), **settings)
    for step in range(steps):
        optimizer.zero_grad()
        (step * layer(torch.ones(1, 3))).sum().backward()
        optimizer.step()
    return layer, optimizer


def test_a_restored_optimiser_goes_on_with_its_rate_and_its_moments() -> None:
    _, optimizer = stepped(3, lr=0.1)
    _, again = stepped(0, lr=0.3)
    state = optimizer.state_dict()
    restore_adam(again, state)
    assert again.param_groups[0]["lr"] == 0.1
    restored = again.state_dict()["state"]
    assert restored.keys() == state["state"].keys() == {0, 1}
    for number, moments in state["state"].items():
        assert all(torch.equal(restored[number][name], moments[name]) for name in moments)


@pytest.mark.parametrize("groups", [[], [{}], [1], {"lr": 0.1}, [{"lr": 0.1}]], ids=str)
def test_settings_of_no_optimiser_are_refused(groups: Any) -> None:
    _, optimizer = stepped(1)
    with pytest.raises(ValueError, match="a state of something else"):
        restore_adam(optimizer, {**optimizer.state_dict(), "param_groups": groups})


@pytest.mark.parametrize("change", [{"betas": 1}, {"lr": "fast"}, {"params": [0]}], ids=str)
def test_an_optimisers_setting_of_another_type_is_refused(change: dict[str, Any]) -> None:
    _, optimizer = stepped(1)
    state = optimizer.state_dict()
    (known,) = state["param_groups"]
    with pytest.raises(ValueError, match="a state of something else"):
        restore_adam(optimizer, {**state, "param_groups": [{**known, **change}]})
