"""The forms of instructions that PTX has: opcodes with their modifiers, types and operands."""
