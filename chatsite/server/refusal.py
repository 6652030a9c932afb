"""The exception for a start that fails for a reason the operator can fix."""


class StartRefused(Exception):
    """The site cannot start; the text is one clear line for the operator."""
