"""Starting the site: its address, its database, its static files, its processes, and stopping them all."""
