"""How well search finds what it should: questions with known places, figures with intervals, comparisons."""
