#!/usr/bin/env python
"""The command line of a checkout: see chatsite/command_line.py."""

from chatsite.command_line import main

if __name__ == "__main__":
    main()
