"""The exception for values that cannot be stored."""


class Invalid(ValueError):
    """A value that cannot be stored; `message` is a sentence about `member`."""

    def __init__(self, message: str, member: str) -> None:
        super().__init__(message)
        self.message = message
        self.member = member
