"""One GPU for several processes: NVIDIA's multi-process service (MPS), for as long as they run."""

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

CONTROL = "nvidia-cuda-mps-control"
"""The program that starts and ends the service; it comes with NVIDIA's driver."""
PIPES, LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
PATIENCE = 30
"""Seconds for the service to start or to end."""
PROBE = """
from ctypes import CDLL, byref, c_void_p
cuda, context = CDLL("libcuda.so.1"), c_void_p()
raise SystemExit(cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(byref(context), 0))
"""
"""Whether a process can use the GPU, without waiting for torch."""


@contextmanager
def shared_gpu(device: str, processes: int) -> Iterator[None]:
    """Let processes that begin in this context use a GPU at the same time, if the driver can.

    Without the service they take turns: while one of them waits for Python, no other may compute.
    One that runs already is used as it is. Where it does not work, there is a warning.
    """
    if processes == 1 or not _wanted(device):
        yield
        return
    # In the usual folder for such things, not the user's: a socket's path is short.
    with tempfile.TemporaryDirectory(prefix="cores-mps-") as folder:
        found = {PIPES: folder, LOGS: str(Path(folder) / "logs")}
        before = {name: os.environ.get(name) for name in found}
        os.environ.update(found)
        try:
            started = _started()
            if not started:
                _put_back(before)
            try:
                yield
            finally:
                if started:
                    _end()
        finally:
            _put_back(before)


def _wanted(device: str) -> bool:
    """Whether processes would use a GPU, nobody has set the service up, and it can be started."""
    if device == "cpu" or PIPES in os.environ or shutil.which(CONTROL) is None:
        return False
    import torch

    return torch.cuda.is_available()


def _started() -> bool:
    """Start the service, and see that it works."""
    try:
        subprocess.run([CONTROL, "-d"], check=True, capture_output=True, timeout=PATIENCE)
    except (OSError, subprocess.SubprocessError) as error:
        _warn(str(error))
        return False
    try:
        probe = [sys.executable, "-c", PROBE]
        subprocess.run(probe, check=True, capture_output=True, timeout=PATIENCE)
    except subprocess.SubprocessError as error:
        _warn(str(error))
        _end()
        return False
    return True


def _end() -> None:
    try:
        subprocess.run(
            [CONTROL], input=b"quit -t 5\n", check=True, capture_output=True, timeout=PATIENCE
        )
    except (OSError, subprocess.SubprocessError) as error:
        warnings.warn(f"{CONTROL} did not end: {error}", stacklevel=2)


def _warn(reason: str) -> None:
    warnings.warn(
        f"processes take turns on the GPU, which is slow: {CONTROL} does not work ({reason})",
        stacklevel=4,
    )


def _put_back(before: Mapping[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
