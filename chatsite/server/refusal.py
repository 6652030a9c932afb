"""The exception for a failed start whose cause the operator can fix."""


class StartRefused(Exception):
    """The site cannot start; the text is one clear line for the operator."""
