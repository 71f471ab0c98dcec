"""From Arrow to pages."""
