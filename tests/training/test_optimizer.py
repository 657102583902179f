"""Adam whose rate lies on the device looks like a plain one from outside."""

import torch
from torch.optim import Adam

from cores.training.optimizer import DeviceAdam, adam, rates, set_rate, skip_steps
from cores.training.schedule import Cosine, plateau


def weights() -> list[torch.nn.Parameter]:
    return list(torch.nn.Linear(3, 2).parameters())


def groups() -> list[dict[str, object]]:
    return [{"params": weights(), "lr": 0.1}, {"params": weights(), "lr": 0.2}]


def test_on_a_cpu_it_is_torchs_own() -> None:
    optimizer = adam(weights(), 0.1, 0.01)
    assert type(optimizer) is Adam
    assert optimizer.param_groups[0]["weight_decay"] == 0.01
    assert rates(optimizer) == [0.1]
    assert adam(weights(), 0.1).param_groups[0]["weight_decay"] == 0
    assert rates(adam(groups(), 0.5)) == [0.1, 0.2]


def test_steps_are_skipped_where_a_number_says_so() -> None:
    (matrix, bias), skipped = weights(), torch.zeros(())
    optimizer = adam([matrix, bias], 0.1)
    skip_steps(optimizer, skipped)
    changed = []
    for number in (0.0, 1.0, 0.0):
        skipped.fill_(number)
        before = matrix.detach().clone()
        matrix.grad, bias.grad = torch.ones_like(matrix), torch.ones_like(bias)
        optimizer.step()
        changed.append(not torch.equal(matrix, before))
    assert changed == [True, False, True]
    assert float(optimizer.state_dict()["state"][0]["step"]) == 2


def test_schedules_write_the_rate_where_it_is() -> None:
    for schedule in (
        lambda optimizer: Cosine(optimizer, 2, 0.5),
        lambda optimizer: plateau(optimizer, 0.5, 0, 0.0),
    ):
        plain, other = Adam(groups()), DeviceAdam(groups())
        places = [group["lr"].data_ptr() for group in other.param_groups]
        for optimizer in (plain, other):
            steps = schedule(optimizer)
            for score in (1.0, 0.5, 0.4):
                steps.step(score)
        assert torch.allclose(torch.tensor(rates(other)), torch.tensor(rates(plain)))
        assert rates(other)[0] < 0.1
        assert [group["lr"].data_ptr() for group in other.param_groups] == places


def test_its_state_is_that_of_a_plain_one_either_way() -> None:
    plain, other = Adam(groups(), weight_decay=0.01), DeviceAdam(groups(), weight_decay=0.01)
    place = other.param_groups[1]["lr"].data_ptr()
    assert all(group["capturable"] for group in other.param_groups)
    assert [group | {"lr": 0} for group in other.state_dict()["param_groups"]] == [
        group | {"lr": 0} for group in plain.state_dict()["param_groups"]
    ]
    set_rate(plain.param_groups[1], 0.5)
    other.load_state_dict(plain.state_dict())
    assert torch.allclose(torch.tensor(rates(other)), torch.tensor([0.1, 0.5]))
    assert other.param_groups[1]["lr"].data_ptr() == place
    assert other.param_groups[1]["capturable"]
    plain.load_state_dict(other.state_dict())
    assert not plain.param_groups[1]["capturable"]
    assert isinstance(plain.param_groups[1]["lr"], float)
