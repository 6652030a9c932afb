"""Numbers in the parameters of requests."""

LARGEST = 999_999_999  # fits into an integer column, even after a small addition
LARGEST_KEY = 2**63 - 1  # of a column of type bigint


def whole_number(text: str, largest: int = LARGEST) -> int | None:
    """The number that the ASCII digits of `text` denote; None for any other text or a larger number.

    `int` would also accept signs, spaces and the digits of other scripts, and raises an error for very many
    digits.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(largest))):
        return None
    number = int(text)
    return number if number <= largest else None
