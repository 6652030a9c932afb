"""Terms that verification compares: words, numbers, times, and their relations."""
