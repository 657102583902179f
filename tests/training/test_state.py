"""Saved states come back equal, and nothing in a file is ever run."""

import pickle
from pathlib import Path

import pytest
import torch

from cores.errors import UserError
from cores.files import write_atomically
from cores.training.state import RandomState, load_state, save_state


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
