"""What is checked of a kernel while it runs, and the findings."""
