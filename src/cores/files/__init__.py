"""Files: whole or not there, of limited size, and their text shown safely."""

from cores.files.whole import (
    LOCK,
    HeldError,
    cache_folder,
    in_turn,
    is_held,
    is_leftover,
    locked,
    make_folder,
    read_json,
    read_text,
    write_atomically,
    write_json,
)

__all__ = [
    "LOCK",
    "HeldError",
    "cache_folder",
    "in_turn",
    "is_held",
    "is_leftover",
    "locked",
    "make_folder",
    "read_json",
    "read_text",
    "write_atomically",
    "write_json",
]
