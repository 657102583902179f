"""The check behind every setting."""

from cores.errors import UserError


def require(holds: bool, message: str) -> None:
    """Raise a :class:`UserError` unless the condition holds."""
    if not holds:
        raise UserError(message)
