"""Pages of others get nothing, nothing is told to others, and nothing is left behind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cores.runs.inputs import PredictOptions
from cores.serve import app as app_module
from cores.serve import explorer
from cores.serve.guard import NAMES

PASTED = "CCO ethanol\nc1ccccc1O phenol\nCC(=O)N\n"


Client = TestClient
Ask = Callable[..., Any]


def test_every_answer_has_the_headers_that_keep_others_out(molecules: Client) -> None:
    for path in ("/", "/explorer.css", "/explorer.js", "/editor.js", "/icon.svg", "/api/none"):
        headers = molecules.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "localhost", "127.0.0.1:80"])
def test_a_request_to_another_name_is_refused(molecules: Client, host: str, refused: Ask) -> None:
    """What a page sends whose name was made to lead here."""
    for path in ("/", "/api/test", "/explorer.js"):
        answer = molecules.get(path, headers={"host": host})
        assert "localhost alone" in refused(answer, 421)
        assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("name", NAMES)
def test_a_request_to_its_own_names_is_answered(molecules: Client, name: str) -> None:
    headers = {"host": f"{name}:8765", "origin": f"http://{name}:8765"}
    assert molecules.get("/", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:9999", "https://localhost:8765"]
)
def test_a_request_of_a_foreign_page_is_refused(
    molecules: Client, origin: str, refused: Ask
) -> None:
    query = {"name": "a.smi"}
    answer = molecules.post("/api/graphs", content=PASTED, params=query, headers={"origin": origin})
    assert "other origins" in refused(answer, 403)


def test_an_image_of_a_foreign_page_is_refused_and_a_link_is_not(
    molecules: Client, refused: Ask
) -> None:
    foreign = {"sec-fetch-site": "cross-site"}
    assert "other sites" in refused(molecules.get("/api/test", headers=foreign), 403)
    assert molecules.get("/", headers=foreign).status_code == 200


def test_a_body_that_a_form_could_send_is_refused(molecules: Client, refused: Ask) -> None:
    for kind in ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded", ""):
        answer = molecules.post(
            "/api/graphs", content=PASTED, params={"name": "a.smi"}, headers={"content-type": kind}
        )
        refused(answer, 415)


def test_nothing_is_told_to_others_whatever_the_environment_says(
    molecule_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FastAPI would refuse this setting, if it were to send anything."""
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    app = app_module.create_app(explorer.Explorer(molecule_run, PredictOptions(), "cpu"))
    with TestClient(app) as client:
        assert client.get("/").status_code == 200


def test_nothing_is_left_behind(
    molecules: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: Ask
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asked(molecules, PASTED)
    molecules.post("/api/graphs", content=b"nothing", params={"name": "a.smi"})
    assert not list(tmp_path.iterdir())


def test_limits_of_files_are_put_back(molecules: Client, asked: Ask) -> None:
    import os

    asked(molecules, PASTED)
    assert "CORES_MAX_MEMORY" not in os.environ
    assert "CORES_MAX_LINE" not in os.environ
