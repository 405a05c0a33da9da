"""Small programs that are wrong only because of order, each beside its corrected twin."""
