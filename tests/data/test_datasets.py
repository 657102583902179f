"""Loading: names, paths, layouts, ground truth, Table 1, npz files, and what is refused."""

import csv
import shutil
import zipfile
from http.client import IncompleteRead
from pathlib import Path

import pytest
import torch

from cores import load_dataset
from cores.data.catalogue import PAPER_DATASETS, canonical_name
from cores.data.dataset import statistics
from cores.errors import UserError
from cores.files import cache_folder


@pytest.mark.data
def test_all_nine_rows_of_table_1_come_out_exactly(data_root: Path) -> None:
    """The paper's table, as it is printed there."""
    table = """
        BZR,405,10,0,2,Yes,35.75,7.26,76.72,15.39
        COX2,467,10,0,2,Yes,41.22,4.03,86.89,8.53
        DD,1178,20,0,2,Yes,284.32,272.00,1431.32,1387.81
        ENZYMES,600,21,0,6,Yes,32.63,15.28,124.27,51.00
        MUTAG,135,7,4,2,Yes,18.85,4.49,41.67,11.13
        NCI1,4110,7,0,2,Yes,29.87,13.56,64.60,29.87
        NCI109,4127,8,0,2,Yes,29.68,13.57,64.26,29.92
        PROTEINS,1113,4,0,2,Yes,39.06,45.76,145.63,169.20
        PTC,349,8,4,2,Yes,14.11,8.44,28.97,18.88
    """
    rows = list(csv.reader(line.strip() for line in table.strip().splitlines()))
    assert [row[0] for row in rows] == list(PAPER_DATASETS)
    for name, *numbers, undirected, nodes, nodes_std, edges, edges_std in rows:
        ours = statistics(load_dataset(name, data_root))
        counts = [ours[key] for key in ("graphs", "node_features", "edge_features", "classes")]
        assert counts == [int(number) for number in numbers], name
        assert ours["undirected"] == (undirected == "Yes")
        spreads = [ours[key] for key in ("nodes_mean", "nodes_std", "edges_mean", "edges_std")]
        assert spreads == [float(each) for each in (nodes, nodes_std, edges, edges_std)], name


@pytest.mark.data
def test_ground_truth_of_ba_2motifs_is_the_last_five_nodes(data_root: Path) -> None:
    graphs = load_dataset("ba_2motifs", data_root).graphs
    assert graphs.node_truth.view(1000, 25)[:, 20:].all()
    assert not graphs.node_truth.view(1000, 25)[:, :20].any()
    batch = graphs.batch(torch.arange(1000))
    both_ends = batch.node_truth[batch.edge_index].all(dim=0)
    assert torch.equal(batch.edge_truth, both_ends)


@pytest.mark.data
def test_ground_truth_of_mutagenicity_marks_edges_in_both_directions(data_root: Path) -> None:
    graphs = load_dataset("Mutagenicity", data_root).graphs
    batch = graphs.batch(torch.arange(len(graphs)))
    marked = {tuple(edge) for edge in batch.edge_index[:, batch.edge_truth].T.tolist()}
    assert len(marked) == 7352
    assert all((b, a) in marked for a, b in marked)
    assert set(batch.node_truth.nonzero().flatten().tolist()) == {a for a, _ in marked}


@pytest.mark.data
def test_ground_truth_of_benzene_marks_rings_of_six(data_root: Path) -> None:
    graphs = load_dataset("Benzene", data_root).graphs
    has_truth = torch.zeros(len(graphs)).index_add(
        0, torch.arange(len(graphs)).repeat_interleave(graphs.num_nodes), graphs.node_truth.float()
    )
    assert torch.equal(has_truth > 0, graphs.y == 1)
    batch = graphs.batch(torch.arange(len(graphs)))
    assert batch.node_truth[batch.edge_index[:, batch.edge_truth]].all()
    degree = torch.bincount(batch.edge_index[0, batch.edge_truth], minlength=len(batch.batch))
    # Every atom of a ring has two bonds in it; an atom that two fused rings share has three. A
    # bond that joins two rings would give its ends a third: there are only fused ones.
    assert ((degree >= 2) == batch.node_truth).all()
    shared = degree == 3
    inside = batch.edge_index[:, batch.edge_truth]
    partners = torch.bincount(inside[0, shared[inside].all(dim=0)], minlength=len(shared))
    assert (partners[shared] >= 1).all(), "shared atoms come in pairs"
    assert int(batch.edge_truth.sum()) == 97_324, "97,420 with the 96 bonds between rings"


def test_without_data_and_network_the_error_names_the_place_for_the_file(
    no_data: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*_: object, **__: object) -> None:
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr("torch_geometric.data.download_url", offline)
    with pytest.raises(UserError, match=r"cannot download MUTAG .*tu_cleaned/MUTAG.zip"):
        load_dataset("MUTAG")


@pytest.mark.data
def test_the_cache_is_read_like_a_data_folder(
    no_data: None, data_root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a download leaves is a zip in the cache; it is not fetched a second time."""

    def download(url: str, folder: str, log: bool) -> None:
        shutil.copy(data_root / "tu_cleaned" / url.rpartition("/")[2], folder)

    monkeypatch.setattr("torch_geometric.data.download_url", download)
    assert len(load_dataset("MUTAG")) == 135
    monkeypatch.setattr("torch_geometric.data.download_url", pytest.fail)
    assert len(load_dataset("MUTAG")) == 135


def test_a_download_that_breaks_off_leaves_nothing(
    no_data: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(url: str, folder: str, log: bool) -> None:
        Path(folder, url.rpartition("/")[2]).write_bytes(b"half of a zip")
        raise IncompleteRead(b"half of a zip")

    monkeypatch.setattr("torch_geometric.data.download_url", break_off)
    for _ in range(2):
        with pytest.raises(UserError, match=r"cannot download MUTAG \(IncompleteRead\)"):
            load_dataset("MUTAG")
    assert not [path for path in cache_folder().rglob("*") if path.is_file()]


def test_a_read_only_folder_is_enough(tu_folder: Path) -> None:
    before = sorted(tu_folder.rglob("*"))
    load_dataset(str(tu_folder))
    assert sorted(tu_folder.rglob("*")) == before


def test_the_fingerprint_changes_with_the_data(tu_folder: Path) -> None:
    first, again = (load_dataset(str(tu_folder)).fingerprint for _ in range(2))
    labels = tu_folder / "toy_graph_labels.txt"
    labels.write_text(labels.read_text().replace("5", "1", 1))
    assert first == again != load_dataset(str(tu_folder)).fingerprint


def test_names_are_known_in_any_case_and_by_alias() -> None:
    assert [canonical_name(name) for name in ("bzr", "ptc", "PTC_FM", "Motifs")] == [
        "BZR",
        "PTC",
        "PTC",
        "motifs",
    ]


def test_motifs_needs_no_file(no_data: None) -> None:
    dataset = load_dataset("motifs")
    assert len(dataset) == 1000
    assert dataset.graphs.node_truth is not None


def test_a_known_name_with_other_content_is_refused(tu_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "root" / "tu").mkdir(parents=True)
    other = tmp_path / "root" / "tu" / "DD"
    other.mkdir()
    for suffix in ("A", "graph_indicator", "graph_labels"):
        shutil.copy(tu_folder / f"toy_{suffix}.txt", other / f"DD_{suffix}.txt")
    with pytest.raises(UserError, match="DD has 1 feature columns in these files, not"):
        load_dataset("DD", tmp_path / "root")


@pytest.mark.data
def test_pygs_own_layout_is_read(data_root: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(data_root / "tu_cleaned" / "MUTAG.zip") as archive:
        archive.extractall(tmp_path)
    (tmp_path / "MUTAG").rename(tmp_path / "files")
    (tmp_path / "MUTAG").mkdir()
    (tmp_path / "files").rename(tmp_path / "MUTAG" / "raw_cleaned")
    assert len(load_dataset("MUTAG", tmp_path)) == 135


def test_a_missing_data_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data folder .*nowhere does not exist"):
        load_dataset("MUTAG", tmp_path / "nowhere")


def test_a_missing_dataset_names_the_place_for_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no MUTAG; put it at .*tu_cleaned/MUTAG.zip"):
        load_dataset("MUTAG", tmp_path)
    with pytest.raises(UserError, match=r"other/Benzene.npz is missing"):
        load_dataset("Benzene", tmp_path)


def test_a_damaged_npz_is_named(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "Benzene.npz").write_bytes(b"no zip")
    with pytest.raises(UserError, match=r"Benzene.npz is not a readable npz"):
        load_dataset("Benzene", tmp_path)


def test_an_unknown_name_gets_the_nearest_ones() -> None:
    with pytest.raises(UserError, match="unknown dataset 'PROTEIN'; did you mean PROTEINS"):
        load_dataset("PROTEIN")
