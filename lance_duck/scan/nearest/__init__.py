"""Nearest neighbours: what is asked, exact search at the speed of memory, and search through vector segments."""
