"""What is known of registers before a kernel runs."""
