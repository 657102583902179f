"""Messages of the library and of the parser, in the words of the command line."""

import re
from collections.abc import Mapping

from cores.errors import nearest

_ARGUMENT = re.compile(r'`([\w.]+)`|`?\b(\w+)=(True|"([^"\s]*)")`?')


def with_flags(message: str, flags: Mapping[str, str]) -> str:
    """A message that speaks of a function's arguments, with the command's options instead.

    Names that are no option of the command stay as they are.

    >>> flags = {"out": "--out", "resume": "--resume", "data_root": "--data-root"}
    >>> with_flags("go on with resume=True or choose another `out`", flags)
    'go on with --resume or choose another --out'
    >>> with_flags("set `data_root` to the right folder", flags)
    'set --data-root to the right folder'
    >>> with_flags('torch sees no CUDA device; use device="cpu"', {"device": "--device"})
    'torch sees no CUDA device; use --device cpu'
    >>> with_flags("`y` has 3 labels; `cores datasets` helps; sample=True", flags)
    '`y` has 3 labels; `cores datasets` helps; sample=True'
    """

    def option(found: re.Match[str]) -> str:
        flag = flags.get(found[1] or found[2])
        if flag is None:
            return found[0]
        return flag if found[4] is None else f"{flag} {found[4]}"

    return _ARGUMENT.sub(option, message)


def parser_message(message: str, flags: Mapping[str, str]) -> str:
    r"""What the parser complains of, without its inner names.

    >>> flags = {"lam": "--lam", "desired_ratio": "--desired-ratio"}
    >>> text = 'Parser key "desired_ratio": Expected a <class \'float\'>. Got value: x'
    >>> parser_message(text, flags)
    '--desired-ratio: expected a number, got x'
    >>> parser_message("Expected a typing.Literal['gin', 'gcn']. Got value: 3", flags)
    'expected one of gin, gcn, got 3'
    >>> parser_message("unrecognized arguments: --lamb 0.5", flags)
    'unrecognized arguments: --lamb 0.5; did you mean --lam?'
    """
    message = re.sub(
        r'Parser key "([\w.]+)"', lambda found: flags.get(found[1], f"--{found[1]}"), message
    )
    message = re.sub(
        r"Expected a typing\.Literal\[(.*?)\]",
        lambda found: "expected one of " + found[1].replace("'", ""),
        message,
    )
    message = re.sub(
        r"Expected a <class '(\w+)'>",
        lambda found: "expected " + _KINDS.get(found[1], found[1]),
        message,
    )
    message = " ".join(message.replace(". Got value:", ", got").split())
    unknown = re.match(r"unrecognized arguments: (--[\w.-]+)", message)
    if unknown and (hint := nearest(unknown[1], flags.values())).startswith("did you mean"):
        message += f"; {hint}"
    return message


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "tuple": "a list such as [a,b]",
}
