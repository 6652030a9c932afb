"""Table rows: those that a question means, and how they are quoted."""
