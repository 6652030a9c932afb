"""The terms that are compared: words, numbers with units, times and dates, and how they are related."""
