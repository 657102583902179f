"""The wheels hold all that the programs need, and nothing of the checkout is needed beside them."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import cores

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"cores": ROOT, "cores_paper": ROOT / "src"}
DISTRIBUTIONS = {"cores": "cores_gnn", "cores_paper": "cores_gnn_paper"}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for package, root in PACKAGES.items():
        folder = tmp_path_factory.mktemp(package)
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, cwd=root, check=True, capture_output=True)
        (found[package],) = folder.glob("*.whl")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_a_wheel_holds_its_package_alone(package: str, wheels: dict[str, Path]) -> None:
    distribution = DISTRIBUTIONS[package]
    assert wheels[package].name.startswith(f"{distribution}-{cores.__version__}-py3")
    names = zipfile.ZipFile(wheels[package]).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {package, distribution}
    source = ROOT / "src" / package
    files = {
        path for path in source.rglob("*") if path.is_file() and "__pycache__" not in str(path)
    }
    sources = {f"{package}/{path.relative_to(source)}" for path in files}
    assert sources == {name for name in names if name.startswith(f"{package}/")}


@pytest.mark.slow
def test_the_tool_alone_trains_predicts_and_explains(
    wheels: dict[str, Path], molecule_file: Path, tmp_path: Path
) -> None:
    """In an environment that has the dependencies, and neither this checkout nor `cores_paper`."""
    site = tmp_path / "site"
    zipfile.ZipFile(wheels["cores"]).extractall(site)
    script = (
        f"import sys; sys.path[:] = [{str(site)!r}, *(p for p in sys.path if 'src' not in p)]; "
        "import cores; assert cores.__file__.startswith(sys.path[0]), cores.__file__; "
        "from cores import plugins; plugins._waiting.clear(); "  # one may be installed
        "from cores.__main__ import main; status = main(); "
        "assert not [name for name in sys.modules if name.startswith('cores_paper')]; "
        "sys.exit(status)"
    )
    paths = sysconfig.get_paths()
    environment = {"PYTHONPATH": paths["purelib"], "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*arguments: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-S", "-c", script, *arguments],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    table = str(molecule_file)
    small = ["--network.hidden_dim", "8", "--network.num_layers", "1", "--epochs", "2"]
    run("train", "--dataset", table, "--model", "cores-node", *small, "--out", "run")
    assert (tmp_path / "run" / "metrics.json").exists()
    assert len(run("predict", "run", table).splitlines()) == 160
    run("explain", "run", table, "--out", "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1000
    assert "reproduce" not in run("--help")
