"""The check behind every setting."""

from cores.errors import UserError


def require(holds: bool, message: str) -> None:
    """What does not hold is the user's to mend."""
    if not holds:
        raise UserError(message)
