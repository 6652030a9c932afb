"""Words of the house: its terms and their meanings, and the words that documents have for everyday ones."""
