"""Evaluation of search: questions with known places, metrics with intervals, comparisons."""
