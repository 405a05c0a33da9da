"""Static analyses of a kernel's registers, done before it runs."""
