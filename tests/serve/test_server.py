"""The command: it tells its address, answers, and ends when it is asked to."""

import builtins
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from cores.__main__ import main
from cores.errors import UserError
from cores.runs.inputs import PredictOptions
from cores.serve import server


def status_of(request: Request) -> int:
    try:
        with urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except HTTPError as error:
        error.close()
        return int(error.code)


def test_ctrl_c_ends_it_without_a_word(molecule_run: Path) -> None:
    command = [sys.executable, "-m", "cores", "serve", str(molecule_run), "--port", "0", "--json"]
    started = subprocess.Popen(
        [*command, "--device", "cpu"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    told = json.loads(started.stdout.readline())
    assert told["run"] == str(molecule_run)
    headers = {"Content-Type": "application/octet-stream"}
    asked = Request(f"{told['url']}api/graphs?name=a.smi", b"CCO ethanol\n", headers)
    with urlopen(asked, timeout=60) as answer:
        assert json.load(answer)["graphs"][0]["name"] == "ethanol"
    slow = Request(f"{told['url']}api/graphs?name=a.smi", ("C1CC1" * 900 + "\n").encode() * 99)
    slow.add_header("Content-Type", "application/octet-stream")
    with ThreadPoolExecutor(1) as waiting:
        answered = waiting.submit(status_of, slow)
        time.sleep(1)
        begin = time.monotonic()
        started.send_signal(signal.SIGINT)
        assert answered.result() == 503, "work at hand is given up"
    printed, errors = started.communicate(timeout=30)
    assert time.monotonic() - begin < 15
    assert (started.returncode, printed, errors) == (0, "", "")


def test_only_this_machine_can_reach_it() -> None:
    with server._listening(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_a_port_that_is_taken_is_told_in_a_line(
    molecule_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", str(molecule_run), "--port", port, "--device", "cpu"]) == 2
    assert f"cannot listen on port {port} (Address already in use" in capsys.readouterr().err
    assert main(["serve", str(molecule_run), "--port", "70000", "--device", "cpu"]) == 2
    assert "--port must lie in 0 to 65535, got 70000" in capsys.readouterr().err


def test_the_page_is_opened_where_asked_for(
    molecule_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    told: list[str] = []

    class Ended:
        def run(self, sockets: Any) -> None:
            raise KeyboardInterrupt

    class Now:
        """A thread that has done its work when it is started."""

        def __init__(self, target: Callable[..., Any], args: Any, daemon: bool) -> None:
            self.start = lambda: target(*args)

    monkeypatch.setattr(server, "_server", lambda *_: Ended())
    monkeypatch.setattr(server.threading, "Thread", Now)
    monkeypatch.setattr(server.webbrowser, "open", shown.append)
    for asked in (False, True):
        server.serve_run(
            molecule_run,
            PredictOptions(),
            port=0,
            device="cpu",
            open_browser=asked,
            started=told.append,
        )
    assert shown == told[1:]
    assert len(told) == 2


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_without_the_extra_the_error_names_it(
    molecule_run: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None if name == missing else builtins)
    with pytest.raises(UserError, match=r"pip install 'cores-gnn\[web\]'"):
        server.serve_run(molecule_run, PredictOptions(), port=0)


def test_the_commands_do_without_the_extra_until_it_is_used() -> None:
    script = (
        "import sys\n"
        "import cores.cli.commands\n"
        "sys.exit(bool({'fastapi', 'starlette', 'uvicorn', 'torch'} & set(sys.modules)))\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
