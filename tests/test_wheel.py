"""The wheel holds all that the program needs, and nothing of the checkout is needed beside it."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import cores

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_alone(wheel: Path) -> None:
    assert wheel.name.startswith(f"cores_gnn-{cores.__version__}-py3")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"cores", "cores_gnn"}
    package = {f"cores/{path.relative_to(ROOT / 'src' / 'cores')}" for path in _sources()}
    assert package == {name for name in names if name.startswith("cores/")}


def _sources() -> list[Path]:
    files = (path for path in (ROOT / "src" / "cores").rglob("*") if path.is_file())
    return [path for path in files if "__pycache__" not in path.parts]


@pytest.mark.slow
def test_an_installed_wheel_trains(wheel: Path, tmp_path: Path) -> None:
    """In an environment that has the dependencies and not this checkout."""
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    script = (
        f"import sys; sys.path[:] = [{str(site)!r}, *(p for p in sys.path if 'src' not in p)]; "
        "import cores; assert cores.__file__.startswith(sys.path[0]), cores.__file__; "
        "from cores.__main__ import main; sys.exit(main())"
    )
    paths = sysconfig.get_paths()
    environment = {"PYTHONPATH": paths["purelib"], "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-S", "-c", script, "train", "--dataset", "motifs"]
    ran = subprocess.run(
        [*command, "--model", "gnn", "--epochs", "4", "--out", "run"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "run" / "metrics.json").exists()
