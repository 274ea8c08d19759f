"""Ways to break what is saved, and to count what is lost."""
