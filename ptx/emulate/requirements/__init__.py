"""What an instruction needs of its module's `.target` and `.version`, and who lacks it."""
