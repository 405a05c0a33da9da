"""Memory and streams of other libraries."""
