"""Models of numbers and of several labels: what the server and its page say of their graphs."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from cores.__main__ import main
from cores.config import RunConfig
from cores.data.inputs.columns import ColumnNames
from cores.runs.run import train_run

pytestmark = pytest.mark.usefixtures("short_judges")
PASTED = "CCO ethanol\nCCCCCC hexane\nC1CC broken"
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
needs_browser = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="needs Debian's chromium"
)
Client = TestClient
Ask = Callable[..., Any]


def trained(table: Path, columns: ColumnNames, reward: dict[str, Any]) -> Path:
    config = RunConfig.from_settings(
        {
            "dataset": str(table),
            "model": "cores-node",
            "training": {"epochs": 6, "learning_rate": 0.01},
            "network": {"hidden_dim": 8, "num_layers": 1},
            "ppo": {"env_steps": 8, "samples": 2},
            "committee": {"members": 2},
            "reward": reward,
        }
    )
    train_run(config, table.parent / "run", device="cpu", columns=columns)
    return table.parent / "run"


@pytest.fixture(scope="module")
def number_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("numbers") / "masses.csv"
    chains = [(1 + at % 9, at % 4) for at in range(160)]
    rows = [
        f"m{at},{'C' * c}{'O' * o},{12.011 * c + 15.999 * o}" for at, (c, o) in enumerate(chains)
    ]
    path.write_text("\n".join(["id,smiles,target", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def label_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    rows = [
        f"m{at},{'C' * (1 + at % 9)}{'O' * (at % 4 // 2)},"
        f"{'' if at % 5 == 0 else at % 4 // 2},"
        f"{'' if at % 7 == 0 else 'yes' if at % 9 > 3 else 'no'}"
        for at in range(160)
    ]
    path.write_text("\n".join(["id,smiles,oxygen,long", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def number_run(number_table: Path) -> Path:
    return trained(number_table, ColumnNames(label="target"), {"tolerance": 9.0})


@pytest.fixture(scope="module")
def label_run(label_table: Path) -> Path:
    return trained(label_table, ColumnNames(label="oxygen,long"), {})


def test_a_number_comes_with_its_interval(
    served: Callable[[Path], Client], number_run: Path, asked: Ask
) -> None:
    client = served(number_run)
    widths = []
    for alpha in (0.01, 0.1, 0.5):
        answer = asked(client, PASTED, alpha=alpha)
        assert [graph["name"] for graph in answer["graphs"]] == ["ethanol", "hexane"]
        for graph in answer["graphs"]:
            assert graph["drawing"].startswith("<svg")
            assert "classes" not in graph
            assert "labels" not in graph
        first = answer["graphs"][0]
        if alpha == 0.01:
            assert first["interval"] is None
            assert "too few for error rate 0.01: no interval has an end" in answer["promise"]
            continue
        assert "an interval misses the true number at most" in answer["promise"]
        lower, upper = map(float, first["interval"])
        assert lower < float(first["prediction"]) < upper
        widths.append(upper - lower)
    assert widths[0] > widths[1]


def test_every_label_comes_with_its_probability_and_set(
    served: Callable[[Path], Client], label_run: Path, asked: Ask
) -> None:
    client = served(label_run)
    sizes = []
    for alpha in (0.01, 0.2, 0.9):
        answer = asked(client, PASTED, alpha=alpha)
        for graph in answer["graphs"]:
            assert [each["name"] for each in graph["labels"]] == ["oxygen", "long"]
            for each in graph["labels"]:
                assert 0.5 <= each["probability"] <= 1
                assert (each["label"], each["correct"]) == (None, None)
        sizes.append(sum(len(e["set"]) for graph in answer["graphs"] for e in graph["labels"]))
    assert sizes[0] == 8, "too few to rule anything out"
    assert sizes[0] > sizes[-1]
    assert "sets of such labels hold both values" in asked(client, PASTED, alpha=0.01)["promise"]
    assert "the sets of each label miss its true value" in answer["promise"]


def test_the_test_graphs_have_what_is_known_of_them(
    served: Callable[[Path], Client], number_run: Path, label_run: Path
) -> None:
    metrics = [json.loads((run / "metrics.json").read_text()) for run in (number_run, label_run)]
    numbers, labels = (
        served(run).get("/api/test").json()["graphs"] for run in (number_run, label_run)
    )
    assert [len(numbers), len(labels)] == [each["test_graphs"] for each in metrics]
    errors = [abs(float(each["label"]) - float(each["prediction"])) for each in numbers]
    assert sum(errors) / len(errors) == pytest.approx(metrics[0]["mae"], rel=1e-2)
    right = [e["correct"] for each in labels for e in each["labels"] if e["label"] is not None]
    assert sum(right) / len(right) == pytest.approx(metrics[1]["accuracy"])


def test_parts_of_labels_are_asked_at_any_sufficiency_and_those_of_numbers_by_their_kind(
    served: Callable[[Path], Client], number_run: Path, label_run: Path
) -> None:
    client = served(label_run)
    assert 'id="sufficiency"' in client.get("/").text
    kept = []
    for value in (0.5, 0.7, 0.95):
        query = {"sufficiency": value, "drawings": False}
        answer = client.get("/api/test", params=query).json()
        kept.append(sum(graph["node_ratio"] for graph in answer["graphs"]))
        assert answer["graphs"][0]["part"]["part alone"].endswith(" or more each")
    assert kept == sorted(kept)
    client = served(number_run)
    page = client.get("/").text
    assert 'id="sufficiency"' not in page
    assert 'id="parts"' in page
    query = {"parts": "cut", "drawings": False}
    graphs = client.get("/api/test", params=query).json()["graphs"]
    assert all("the tolerance" in graph["part"]["check"] for graph in graphs)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("what", ["numbers", "labels"])
def test_the_records_are_those_of_predict(
    served: Callable[[Path], Client],
    number_run: Path,
    label_run: Path,
    tmp_path: Path,
    kind: str,
    what: str,
) -> None:
    run = {"numbers": number_run, "labels": label_run}[what]
    table = "id,smiles\na,CCO\nb,CCCCCC\nbroken,C1CC\n"
    (tmp_path / "new.csv").write_text(table)
    out = tmp_path / f"out.{kind}"
    arguments = ("predict", run, tmp_path / "new.csv", "--out", out, "--alpha", "0.25")
    assert main([*map(str, arguments), "--parts", "cut", "--device", "cpu"]) == 0
    query = {"name": "new.csv", "alpha": "0.25", "parts": "cut", "format": kind}
    answer = served(run).post("/api/graphs", content=table, params=query)
    assert answer.status_code == 200

    def plain(text: str) -> list[dict[str, Any]]:
        if kind == "jsonl":
            return [json.loads(line) for line in text.splitlines()]
        return list(csv.DictReader(io.StringIO(text)))

    mine, theirs = plain(answer.text), plain(out.read_text())
    assert [list(row) for row in mine] == [list(row) for row in theirs]
    for a, b in zip(mine, theirs, strict=True):
        for name in a:
            if what == "numbers" and name in ("prediction", "lower", "upper") and a[name]:
                assert float(a[name]) == pytest.approx(float(b[name]), rel=1e-5)
            elif name != "probabilities":  # which may differ in the last digit
                assert a[name] == b[name]


@needs_browser
def test_the_page_shows_a_number_with_its_interval(
    opened: Callable[..., Any], number_run: Path, hard_to_read: Callable[[Any], list[str]]
) -> None:
    tab = opened(number_run)
    page = tab.page
    assert "Error rate of the prediction intervals" in page.content()
    assert "predicts a number" in page.locator("header").first.inner_text()
    tab.paste(PASTED, 2)
    interval = page.locator(".card dt", has_text="interval").first.locator("+ dd")
    before = interval.inner_text()
    assert " to " in before
    assert page.locator(".card table").count() == 0
    page.get_by_label("Error rate, number").fill("0.4")
    page.locator("#promise", has_text="error rate 0.4").wait_for()
    assert interval.inner_text() != before
    with page.expect_response(lambda answer: "parts=cut&" in answer.url):
        page.get_by_label("Parts").select_option("cut")
    page.get_by_role("button", name="Show the run’s test graphs").click()
    page.locator(".card dt", has_text="true").first.wait_for()
    assert hard_to_read(page) == []
    tab.check_quiet()
    tab.page.set_viewport_size(PHONE)
    assert tab.too_wide == 0


@needs_browser
def test_the_page_shows_every_label(
    opened: Callable[..., Any], label_run: Path, hard_to_read: Callable[[Any], list[str]]
) -> None:
    tab = opened(label_run, viewport=PHONE)
    page = tab.page
    tab.paste(PASTED, 2)
    rows = page.locator(".card").first.locator("tbody tr")
    assert [row.split()[0] for row in rows.all_inner_texts()] == ["oxygen", "long"]
    assert page.locator(".card .labels").count() == 4
    page.get_by_label("Error rate, number").fill("0.01")
    page.locator("#promise", has_text="error rate 0.01").wait_for()
    assert page.locator(".card .labels").first.inner_text() == "{0, 1}"
    assert tab.too_wide == 0
    page.get_by_role("button", name="Show the run’s test graphs").click()
    page.locator(".card th", has_text="true").first.wait_for()
    assert page.locator(".card .right, .card .wrong").count() > 0
    assert hard_to_read(page) == []
    assert tab.too_wide == 0
    tab.check_quiet()
