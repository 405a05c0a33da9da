"""The emulator's checks beside compute-sanitizer's, over programs of the ground truth."""
