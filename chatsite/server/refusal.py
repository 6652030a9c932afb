"""The one way in which a start fails for a reason that an operator can act upon."""


class StartRefused(Exception):
    """The site cannot start; the text is one clear line for the operator."""
