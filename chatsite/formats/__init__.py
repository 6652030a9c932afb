"""How dates and times are written by Django's own pages: as the portal writes them."""
