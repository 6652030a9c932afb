"""What the page of a conversation shows: turns, answers, and pages of turns."""
