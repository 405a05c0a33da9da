"""One row for each opcode of PTX: its facts, where its operation is, its needs and its forms."""
