"""Damage for ``make fuzz``: a valid file changed as bytes, as text, or as what it stands for.

A file of JSON, arrays or weights is read, a part of what it holds is changed, and it is written
again, with its checksums right: so damage reaches what is behind the first check of a reader.
"""

import copy
import csv
import gzip
import io
import json
import re
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import tomli_w
import torch
from pyarrow import parquet
from torch_geometric.data import Data

from cores.training.state import load_state, save_state

NUMBERS = (
    *("-1", "0", "1", "1.5", "2147483648", "9223372036854775808", "1e308", "1e-320", "-0.0"),
    *("nan", "NaN", "inf", "-Infinity", "9" * 5000, "0x10", "1_000", "٣", "²", "1e", "", " "),
)
"""Texts that a number is replaced by."""
STRANGE = (
    *(b"\xef\xbb\xbf", b"\x00", b"\x1b[31m", b"\xc2\x9b2J", b"\xff\xfe", b"\xed\xa0\x80"),
    *("\u2028".encode(), "\u202e".encode(), b"\\ud800", b"\r", b"\r\n", b"\n\n", b"\t", b","),
    *(b";", b'"', b"'", b"../", b"[" * 5000, b"{" * 200, b"a" * 200_000, b"$$$$\n", b"#", b"\\"),
)
"""Bytes that are put in somewhere: escapes of terminals, halves of characters, delimiters."""
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 2**31, 2**63, -(2**63), 10**40, 0.5, -0.0, 1e308, 1e-320),
    *(float("nan"), float("inf"), "", "nan", "1", "\x1b[31m", "\ud800", "é" * 300, [], {}, [[]]),
    *({"": None}, [1, "a"], [[0, 0]], {"dict": []}, "../../etc", "x" * 100_000),
)
"""Values that a part of a tree is replaced by."""
DEEP = (dict, list, np.ndarray, torch.Tensor)
"""Values that have parts: damage seeks them."""
KINDS = ("?", "i1", "u1", "i8", "u8", "f2", "f4", "f8", "c8", "U3", "S2", "O", "M8[s]")
"""Types of numpy that an array is turned into."""


def damaged(name: str, content: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """A file with one to three changes; ``others`` are files to take pieces from."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        match random.choice(("values",) * 5 + ("text",) * 2 + ("bytes",) * 2 + ("splice",)):
            case "values":
                content = _revalued(name, content, random)
            case "text":
                content = text(content, random)
            case "bytes":
                content = _bytes(content, random)
            case _:
                content = _spliced(content, random.choice(others), random)
    return content


def _revalued(name: str, content: bytes, random: Random) -> bytes:
    """A file of which something is changed that it stands for; as text where that cannot be."""
    form = FORMS.get(Path(name).suffix)
    if form is None:
        return text(content, random)
    try:
        return form.write(changed(form.read(content), random))
    except Exception:  # what earlier changes left cannot be read, or the new one not be written
        return text(content, random)


def changed(value: Any, random: Random) -> Any:
    """A copy of nested values with one of them changed."""
    if isinstance(value, dict | list) and value and random.random() < 0.95:
        return _inside(value, random)
    if isinstance(value, torch.Tensor):
        return torch.from_numpy(_array(value.numpy(), random))
    if isinstance(value, np.ndarray):
        return _array(value, random)
    if isinstance(value, bytes):
        return (_bytes if random.random() < 0.3 else text)(value, random)
    if isinstance(value, str) and random.random() < 0.5:
        return text(value.encode(errors="surrogatepass"), random).decode(errors="replace")
    if type(value) in (int, float) and random.random() < 0.5:
        return random.choice((value + 1, value - 1, -value, value * 2, float(value), str(value)))
    if random.random() < 0.1:
        for _ in range(random.choice((50, 150, 900))):
            value = [value]
        return value
    return copy.deepcopy(random.choice(VALUES))


def _inside(value: Any, random: Random) -> Any:
    """A container with an item changed, dropped, doubled, renamed or in the place of another."""
    there = copy.copy(value)
    places = list(value) if isinstance(value, dict) else range(len(value))
    deep = [place for place in places if isinstance(value[place], DEEP)]
    place = random.choice(deep if deep and random.random() < 0.7 else places)
    other = random.choice(places)
    match random.choice(("change",) * 12 + ("drop", "double", "rename", "move")):
        case "drop":
            del there[place]
        case "double" if isinstance(there, list):
            there.insert(other, there[place])
        case "double" | "rename" if isinstance(there, dict):
            there[_renamed(place, random)] = there[place]
        case "move":
            there[place] = there[other]
        case _:
            there[place] = changed(there[place], random)
    return there


def _renamed(name: Any, random: Random) -> Any:
    return random.choice((f"{name}_", f"../{name}", str(name).upper(), "", f"/{name}", "\x1b[m"))


def _array(array: Any, random: Random) -> Any:
    """An array of another type, shape or content."""
    array = np.array(array)
    match random.choice(("kind", "shape", "content", "content", "content")):
        case "kind":
            return array.astype(random.choice(KINDS))
        case "shape":
            changes: tuple[Callable[[], Any], ...] = (
                lambda: array[None],
                lambda: array[..., None],
                lambda: array[..., 0],
                lambda: array[:-1],
                lambda: array[:0],
                lambda: array.T.copy(),
                lambda: array.reshape(-1),
                lambda: np.concatenate([array, array]),
                lambda: array.reshape(-1)[0],
            )
            return random.choice(changes)()
    if array.size:
        flat = array.reshape(-1)
        place, source = random.randrange(array.size), random.randrange(array.size)
        some = random.choice((slice(place, place + 1), slice(place, None), slice(None)))
        with np.errstate(all="ignore"):
            flat[some] = random.choice(
                (-1, 0, 1, flat[source], 2**31, 2**62, 1e30, 1e308, np.nan, np.inf)
            )
    return array


def text(content: bytes, random: Random) -> bytes:
    """Text with a number, a word, a line or a delimiter changed."""
    tokens = list(re.finditer(rb"[-+.\w]+", content))
    if not tokens:
        return _bytes(content, random)
    token, other = random.choice(tokens), random.choice(tokens)
    lines = content.splitlines(keepends=True)
    line = random.randrange(len(lines))
    match random.choice(("number", "number", "drop", "double", "swap", "put", "lines", "case")):
        case "number":
            new = random.choice(NUMBERS).encode()
        case "drop":
            new = b""
        case "double":
            new = token[0] + random.choice((b"", b" ", b",", b"\n")) + token[0]
        case "swap":
            new = other[0]
        case "put":
            new = random.choice(STRANGE) + token[0]
        case "case":
            new = token[0].swapcase()
        case _:
            lines[line : line + 1] = random.choice(([], lines[line : line + 1] * 2, lines[:line]))
            return b"".join(lines)
    return content[: token.start()] + new + content[token.end() :]


def _bytes(content: bytes, random: Random) -> bytes:
    """Bytes flipped, put in, taken out, cut off or repeated; often near one of the ends."""
    size = len(content)
    near = random.choice((size, size, min(size, 300)))
    first = random.randrange(near + 1)
    if random.random() < 0.2:
        first = size - first
    last = min(size, first + random.choice((1, 1, 2, 8, 100)))
    piece = content[first:last]
    new = random.choice(
        (
            bytes(byte ^ (1 << random.randrange(8)) for byte in piece),
            random.randbytes(len(piece)),
            piece + random.randbytes(random.choice((1, 4, 50))),
            piece + random.choice(STRANGE),
            piece * random.choice((0, 2, 50)),
        )
    )
    return content[:first] if random.random() < 0.1 else content[:first] + new + content[last:]


def _spliced(content: bytes, other: bytes, random: Random) -> bytes:
    """The beginning of one file, and the end of another."""
    return content[: random.randrange(len(content) + 1)] + other[random.randrange(len(other) + 1) :]


class Form(NamedTuple):
    """How a kind of file becomes nested values, and they a file again."""

    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]


def _read_table(content: bytes, separator: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode()), delimiter=separator))


def _write_table(rows: Any, separator: str) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator="\n").writerows(rows)
    return buffer.getvalue().encode()


def _read_zip(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _write_zip(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _read_arrays(content: bytes) -> dict[str, Any]:
    return dict(np.load(io.BytesIO(content)))


def _write_arrays(arrays: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _read_state(content: bytes) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(content)
        return load_state(Path(file.name))


def _write_state(state: dict[str, Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save_state(Path(folder) / "state", state)
        return (Path(folder) / "state").read_bytes()


def _read_graphs(content: bytes) -> list[Any]:
    return [graph.to_dict() for graph in torch.load(io.BytesIO(content), weights_only=False)]


def _write_graphs(graphs: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save([Data.from_dict(graph) for graph in graphs], buffer)
    return buffer.getvalue()


def _read_toml(content: bytes) -> dict[str, Any]:
    return tomllib.loads(content.decode())


def _write_toml(values: Any) -> bytes:
    return tomli_w.dumps(values).encode()


def _write_parquet(columns: Any) -> bytes:
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


FORMS = {
    ".json": Form(json.loads, lambda value: json.dumps(value).encode()),
    ".jsonl": Form(
        lambda content: [json.loads(line) for line in content.splitlines()],
        lambda rows: "\n".join(map(json.dumps, rows)).encode(),
    ),
    ".toml": Form(_read_toml, _write_toml),
    ".csv": Form(lambda content: _read_table(content, ","), lambda rows: _write_table(rows, ",")),
    ".tsv": Form(lambda content: _read_table(content, "\t"), lambda rows: _write_table(rows, "\t")),
    ".gz": Form(gzip.decompress, gzip.compress),
    ".zip": Form(_read_zip, _write_zip),
    ".npz": Form(_read_arrays, _write_arrays),
    ".safetensors": Form(_read_state, _write_state),
    ".pt": Form(_read_graphs, _write_graphs),
    ".parquet": Form(
        lambda content: parquet.read_table(io.BytesIO(content)).to_pydict(), _write_parquet
    ),
}
"""By the ending of a file."""
