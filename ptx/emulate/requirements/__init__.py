"""The `.target` and `.version` that instructions require, and checks of modules against them."""
