"""The exception for a failed start whose cause the operator can fix."""


class StartRefused(Exception):
    """The site cannot start; the text is for the operator, with one clear line for each problem."""
