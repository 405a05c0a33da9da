"""How threads access memory: where an element lies, whether the access is allowed, its value."""
