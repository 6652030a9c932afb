"""What the page of a conversation shows: turns, their answers, and the pages of long conversations."""
