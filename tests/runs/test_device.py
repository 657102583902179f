"""The CPU set up for many small operations."""

import platform
import resource

import pytest
import torch

from cores.runs.device import keep_free_memory

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")


@glibc
def test_memory_of_tensors_that_are_gone_is_used_again() -> None:
    assert keep_free_memory()
    faults = []
    for _ in range(20):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        tensors = [torch.zeros(2**20) for _ in range(4)]  # 4 MB each, and a page has 4 KB
        del tensors
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    assert sum(faults[5:]) < 1000
