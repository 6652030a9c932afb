"""The contents of a conversation's page: turns, answers, and pages of turns."""
