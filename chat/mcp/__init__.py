"""The server of the Model Context Protocol: language models search, read and ask with a person's rights."""
