"""The terms that verification compares: words, numbers, times, and their relations."""
