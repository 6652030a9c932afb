"""The checks of one claim against the sentences that it cites: words, names, numbers, alignment."""
