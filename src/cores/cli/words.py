"""Messages of the library and of the parser, in the words of the command line."""

import re
from collections.abc import Mapping

from cores.errors import nearest

_ARGUMENT = re.compile(r'`([\w.]+)`|`?\b([\w.]+)=(True|"([^"\s]*)")`?')
_OF_TRAIN = " of `cores train`"


def with_flags(
    message: str, flags: Mapping[str, str], of_train: Mapping[str, str] | None = None
) -> str:
    """A message that speaks of a function's arguments, with the command's options instead.

    Names that are no option of the command are those of ``cores train``, where they are given,
    and else stay as they are.

    >>> flags = {"out": "--out", "resume": "--resume", "data_root": "--data-root"}
    >>> with_flags("go on with resume=True or choose another `out`", flags)
    'go on with --resume or choose another --out'
    >>> with_flags("set `data_root` to the right folder", flags)
    'set --data-root to the right folder'
    >>> with_flags('torch sees no CUDA device; use device="cpu"', {"device": "--device"})
    'torch sees no CUDA device; use --device cpu'
    >>> with_flags("`y` has 3 labels; `cores datasets` helps; sample=True", flags)
    '`y` has 3 labels; `cores datasets` helps; sample=True'
    >>> with_flags("raise `lam` or `mix`", {}, {"lam": "--lam", "mix": "--mix"})
    'raise --lam or --mix of `cores train`'
    """

    def option(found: re.Match[str]) -> str:
        name, value = found[1] or found[2], "" if found[4] is None else f" {found[4]}"
        if name in flags:
            return flags[name] + value
        return trains[name] + value + _OF_TRAIN if name in trains else found[0]

    trains = of_train or {}
    text = _ARGUMENT.sub(option, message)
    return text.replace(_OF_TRAIN, "", text.count(_OF_TRAIN) - 1)  # said once, after the last


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
