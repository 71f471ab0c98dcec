"""Zone maps and Bloom filters: what a file says together about stretches of rows of one fragment."""
