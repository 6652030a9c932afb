"""The checks of a claim against the sentences that it cites."""
