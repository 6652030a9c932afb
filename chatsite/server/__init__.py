"""Starting and stopping the site.

This includes its address, its database, its static files, and its processes.
"""
