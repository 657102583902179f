"""Files: whole or not there, of limited size, and their text shown safely."""

from cores.files.whole import (
    LOCK,
    HeldError,
    atomic_writer,
    cache_folder,
    in_turn,
    is_held,
    is_leftover,
    locked,
    make_folder,
    open_unlinked,
    parsed_json,
    read_json,
    read_text,
    unlinked,
    write_atomically,
    write_json,
)

__all__ = [
    "LOCK",
    "HeldError",
    "atomic_writer",
    "cache_folder",
    "in_turn",
    "is_held",
    "is_leftover",
    "locked",
    "make_folder",
    "open_unlinked",
    "parsed_json",
    "read_json",
    "read_text",
    "unlinked",
    "write_atomically",
    "write_json",
]
